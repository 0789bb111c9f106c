package storekey

import (
	"strings"
	"testing"
)

func TestSecrets(t *testing.T) {
	a, b := NewSecret(), NewSecret()
	if a == b {
		t.Fatal("two secrets are equal")
	}
	if !WellFormed([]byte(a)) {
		t.Errorf("%q is not well-formed", a)
	}
	for i := range a {
		other := byte('x')
		if a[i] == other {
			other = 'y'
		}
		if s := a[:i] + string(other) + a[i+1:]; WellFormed([]byte(s)) {
			t.Errorf("%q is well-formed with another byte at %d", s, i)
		}
	}
	for _, s := range []string{"", "spk_", a[:len(a)-1], a + "0"} {
		if WellFormed([]byte(s)) {
			t.Errorf("%q is well-formed", s)
		}
	}
	if Digest([]byte(a)) == Digest([]byte(b)) {
		t.Error("two secrets share a digest")
	}
}

func TestScopes(t *testing.T) {
	for _, s := range AllScopes() {
		if _, ok := ParseScope(string(s)); !ok {
			t.Errorf("%q is refused", s)
		}
	}
	if _, ok := ParseScope("signals:read"); ok {
		t.Error("an unknown scope is taken")
	}
	g := Grant{Scopes: []Scope{CatalogRead}}
	if g.Allows(SignalsWrite) || !g.Allows(CatalogRead) {
		t.Error("a grant allows other scopes than its own")
	}
}

// FuzzWellFormed: a minted secret is well-formed, and not with any byte changed.
func FuzzWellFormed(f *testing.F) {
	f.Add([]byte(NewSecret()), 10, byte('x'))
	f.Add([]byte("spk_"), 0, byte(0))
	f.Add([]byte{}, 0, byte(0xff))
	secret := NewSecret()
	f.Fuzz(func(t *testing.T, b []byte, at int, with byte) {
		if WellFormed(b) && len(b) != len(secret) {
			t.Fatalf("%q is well-formed", b)
		}
		changed := []byte(secret)
		if at < 0 || at >= len(changed) || changed[at] == with {
			return
		}
		changed[at] = with
		if WellFormed(changed) {
			t.Fatalf("%q is well-formed, and was made of %q", changed, secret)
		}
	})
}

func TestChangeMembers(t *testing.T) {
	t.Parallel()
	want := Change{Version: 1 << 40, Token: "a-b", Digest: Digest([]byte("x"))}
	got, err := ParseMember(want.Member(), float64(want.Version))
	if err != nil || got != want || !got.Same(want) {
		t.Errorf("%+v, %v", got, err)
	}
	if got.Same(Change{Version: want.Version, Token: "c"}) {
		t.Error("changes with different tokens are the same")
	}
	for _, broken := range []string{"", ":", "a-b:", "a-b:00", "a-b:" + strings.Repeat("x", 64),
		":" + strings.Repeat("0", 64)} {
		if _, err := ParseMember(broken, 1); err == nil {
			t.Errorf("%q is a change", broken)
		}
	}
}
