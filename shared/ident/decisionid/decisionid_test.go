package decisionid

import (
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"storefront.internal/shared/ident"
)

func secretOf(b byte) string {
	return base64.StdEncoding.EncodeToString([]byte(strings.Repeat(string(rune(b)), 32)))
}

func ringOf(t *testing.T, s string) *Keyring {
	t.Helper()
	r, err := ParseKeyring(s)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestMintedIsVerifiedForItsConnectionOnly(t *testing.T) {
	r := ringOf(t, "a:"+secretOf('a'))
	now := time.Date(2026, 5, 6, 7, 8, 9, 123e6, time.UTC)
	id := string(r.Mint("con_1", now))
	if !ident.Valid(ident.Decision, id) {
		t.Errorf("%q has not the form of a Decision id", id)
	}
	if !r.Verify("con_1", id) {
		t.Error("an id that was minted for the connection is refused")
	}
	if r.Verify("con_2", id) {
		t.Error("an id of another connection is taken")
	}
	if at, ok := MintedAt(id); !ok || !at.Equal(now) {
		t.Errorf("MintedAt = %v, %v; want %v", at, ok, now)
	}
}

func TestEveryTamperedByteIsRefused(t *testing.T) {
	r := ringOf(t, "a:"+secretOf('a'))
	id := string(r.Mint("con_1", time.Now()))
	for i := len(prefix); i < len(id); i++ {
		other := byte('A')
		if id[i] == other {
			other = 'B'
		}
		if r.Verify("con_1", id[:i]+string(other)+id[i+1:]) {
			t.Errorf("taken with another byte at %d", i)
		}
	}
	for _, s := range []string{"", "dec_", "dec_abc", id[:len(id)-1], id + "A",
		strings.Repeat("x", len(id))} {
		if r.Verify("con_1", s) {
			t.Errorf("%q is taken", s)
		}
	}
}

func TestKeysRotate(t *testing.T) {
	old := ringOf(t, "a:"+secretOf('a'))
	both := ringOf(t, "b:"+secretOf('b')+",a:"+secretOf('a'))
	id := string(old.Mint("con_1", time.Now()))
	if !both.Verify("con_1", id) {
		t.Error("an id of the old key is refused after the rotation")
	}
	if old.Verify("con_1", string(both.Mint("con_1", time.Now()))) {
		t.Error("an id of the new key is taken by a ring that has not got it")
	}
}

func TestParseKeyringRefuses(t *testing.T) {
	for _, s := range []string{"", "a", "a:!!", "a:" + base64.StdEncoding.EncodeToString([]byte("short")),
		"toolong:" + secretOf('a'), "A:" + secretOf('a'), "a:" + secretOf('a') + ",a:" + secretOf('b'),
		"a:" + secretOf('a') + ",b:" + secretOf('b') + ",c:" + secretOf('a')} {
		_, err := ParseKeyring(s)
		if err == nil {
			t.Errorf("%q is taken", s)
			continue
		}
		if strings.Contains(err.Error(), secretOf('a')) {
			t.Error("the error quotes a secret")
		}
	}
}

func BenchmarkVerify(b *testing.B) {
	r, _ := ParseKeyring("a:" + secretOf('a'))
	id := string(r.Mint("con_1", time.Now()))
	b.ReportAllocs()
	for b.Loop() {
		if !r.Verify("con_1", id) {
			b.Fatal("refused")
		}
	}
}

// FuzzVerify: an id that was not minted for the connection is refused.
func FuzzVerify(f *testing.F) {
	ring, err := ParseKeyring("k1:" + strings.Repeat("QUJD", 11))
	if err != nil {
		f.Fatal(err)
	}
	const ( // minted once: the fuzzer's workers are processes of their own
		mine  = "dec_azEAAAGjGFxQAHZ6uxkhCeB10yc0mZSF3BR_W2aqoWmMsb9l"
		other = "dec_azEAAAGjGFxQAHQerFl1zV1cDJzuJgeUY6Nq18odZlAbqNUP"
	)
	for _, id := range []string{mine, other, mine[:len(mine)-1], mine + "A", "dec_", "",
		"dec_" + strings.Repeat("A", 48), strings.ToUpper(mine)} {
		f.Add(id)
	}
	f.Fuzz(func(t *testing.T, id string) {
		if ring.Verify("con_mine", id) != (id == mine) {
			t.Fatalf("%q: %t", id, ring.Verify("con_mine", id))
		}
		MintedAt(id)
	})
}
