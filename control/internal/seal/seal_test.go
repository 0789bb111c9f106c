package seal

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

func newSealer(t *testing.T) *Sealer {
	t.Helper()
	keys, err := NewKeyset()
	if err != nil {
		t.Fatal(err)
	}
	s, err := Parse(keys)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func place() Binding {
	return Binding{Table: "api_keys", Column: "sealed_secret", Row: "key_1", Connection: "con_1"}
}

func TestSealOpensOnlyAtItsPlace(t *testing.T) {
	t.Parallel()
	s := newSealer(t)
	const secret = "spk_canary"
	sealed, err := s.Seal([]byte(secret), place())
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(sealed), secret) {
		t.Fatal("the ciphertext holds the secret")
	}
	got, err := s.Open(sealed, place())
	if err != nil || string(got) != secret {
		t.Fatalf("Open = %q, %v", got, err)
	}
	f := func(name string, change func(*Binding)) {
		t.Helper()
		at := place()
		change(&at)
		if _, err := s.Open(sealed, at); err == nil {
			t.Errorf("opens with another %s", name)
		} else if strings.Contains(err.Error(), secret) {
			t.Errorf("the error quotes the secret")
		}
	}
	f("table", func(p *Binding) { p.Table = "installations" })
	f("column", func(p *Binding) { p.Column = "other" })
	f("row", func(p *Binding) { p.Row = "key_2" })
	f("connection", func(p *Binding) { p.Connection = "con_2" })
	f("separator", func(p *Binding) { p.Row, p.Connection = "key_1|con_1", "x" })
	f("empty connection", func(p *Binding) { p.Connection = "" })
	sealed[len(sealed)-1] ^= 1
	if _, err := s.Open(sealed, place()); err == nil {
		t.Error("opens a changed ciphertext")
	}
}

func TestAnotherKeysetDoesNotOpen(t *testing.T) {
	t.Parallel()
	s, other := newSealer(t), newSealer(t)
	sealed, err := s.Seal([]byte("x"), place())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.Open(sealed, place()); err == nil {
		t.Error("opens under another keyset")
	}
	if err := s.CheckHeader(sealed[:HeaderLen]); err != nil {
		t.Errorf("own header: %v", err)
	}
	if err := other.CheckHeader(sealed[:HeaderLen]); err == nil {
		t.Error("another keyset says that it knows the key")
	}
	if err := s.CheckHeader(nil); err == nil {
		t.Error("an empty header passes")
	}
}

func TestRotatedKeysetOpensOldCiphertexts(t *testing.T) {
	t.Parallel()
	first, second := keysetMap(t), keysetMap(t)
	old, err := Parse(marshal(t, first))
	if err != nil {
		t.Fatal(err)
	}
	sealed, err := old.Seal([]byte("x"), place())
	if err != nil {
		t.Fatal(err)
	}
	second["key"] = append(second["key"].([]any), first["key"].([]any)...)
	rotated, err := Parse(marshal(t, second))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := rotated.Open(sealed, place()); err != nil || string(got) != "x" {
		t.Errorf("Open = %q, %v", got, err)
	}
	fresh, err := rotated.Seal([]byte("y"), place())
	if err != nil {
		t.Fatal(err)
	}
	if err := old.CheckHeader(fresh[:HeaderLen]); err == nil {
		t.Error("the rotated keyset still seals with the old key")
	}
}

func TestParseNeverQuotesTheKeyset(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"", "canary", `{"canary":1}`, `{"primaryKeyId":1,"key":[]}`} {
		if _, err := Parse([]byte(bad)); err == nil {
			t.Errorf("Parse(%q) succeeds", bad)
		} else if strings.Contains(err.Error(), "canary") {
			t.Errorf("the error quotes the keyset: %v", err)
		}
	}
	raw := keysetMap(t)
	raw["key"].([]any)[0].(map[string]any)["outputPrefixType"] = "RAW"
	if _, err := Parse(marshal(t, raw)); err == nil {
		t.Error("takes keys whose ciphertexts carry no id")
	}
}

func keysetMap(t *testing.T) map[string]any {
	t.Helper()
	keys, err := NewKeyset()
	if err != nil {
		t.Fatal(err)
	}
	var m map[string]any
	if err := json.Unmarshal(keys, &m); err != nil {
		t.Fatal(err)
	}
	return m
}

func marshal(t *testing.T, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// FuzzOpen: only what was sealed with this binding opens, and no error quotes the secret.
func FuzzOpen(f *testing.F) {
	keys, err := NewKeyset()
	if err != nil {
		f.Fatal(err)
	}
	s, err := Parse(keys)
	if err != nil {
		f.Fatal(err)
	}
	sealed, err := s.Seal([]byte("canary"), place())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(0, 0, byte(0), "key_1", "con_1")
	f.Add(5, 7, byte(1), "key_1", "con_1")
	f.Add(0, 0, byte(0), "key_2", "con_1")
	f.Add(1000, 0, byte(0), "", "")
	f.Fuzz(func(t *testing.T, cut, at int, flip byte, row, connection string) {
		changed := slices.Clone(sealed[:max(0, len(sealed)-max(0, cut))])
		if at >= 0 && at < len(changed) {
			changed[at] ^= flip
		}
		where := place()
		where.Row, where.Connection = row, connection
		got, err := s.Open(changed, where)
		if ours := string(changed) == string(sealed) && where == place(); ours != (err == nil) || ours &&
			string(got) != "canary" {
			t.Fatalf("%x at %+v: %q, %v", changed, where, got, err)
		}
		if err != nil && strings.Contains(err.Error(), "canary") {
			t.Fatal("the error quotes the secret")
		}
	})
}
