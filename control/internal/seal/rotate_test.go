package seal

import (
	"bytes"
	"testing"
)

func TestRotationOpensEverythingUntilTheKeyIsRetired(t *testing.T) {
	t.Parallel()
	keys, err := NewKeyset()
	if err != nil {
		t.Fatal(err)
	}
	parse := func(keys []byte, err error) ([]byte, *Sealer) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		s, err := Parse(keys)
		if err != nil {
			t.Fatal(err)
		}
		return keys, s
	}
	keys, before := parse(keys, nil)
	old, err := before.Seal([]byte("secret"), place())
	if err != nil || !bytes.HasPrefix(old, before.Header()) {
		t.Fatalf("header %x of %x, %v", before.Header(), old[:5], err)
	}
	keys, added := parse(Add(keys))
	if !bytes.Equal(added.Header(), before.Header()) {
		t.Error("an added key seals already")
	}
	keys, promoted := parse(Promote(keys))
	fresh, err := promoted.Seal([]byte("secret"), place())
	if err != nil || bytes.HasPrefix(fresh, before.Header()) || !bytes.HasPrefix(fresh, promoted.Header()) {
		t.Errorf("the promoted key does not seal: %v", err)
	}
	for _, sealed := range [][]byte{old, fresh} {
		for _, s := range []*Sealer{added, promoted} {
			if _, err := s.Open(sealed, place()); err != nil {
				t.Error(err)
			}
		}
	}
	_, retired := parse(Retire(keys))
	if _, err := retired.Open(fresh, place()); err != nil {
		t.Error(err)
	}
	if _, err := retired.Open(old, place()); err == nil || retired.CheckHeader(old[:HeaderLen]) == nil {
		t.Error("a retired key opens")
	}
	for _, f := range []func([]byte) ([]byte, error){Add, Promote, Retire} {
		if _, err := f([]byte("{}")); err == nil {
			t.Error("no keyset was changed")
		}
	}
}
