package ident

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"
)

func TestValid(t *testing.T) {
	f := func(p Prefix, s string, want bool) {
		t.Helper()
		if got := Valid(p, s); got != want {
			t.Errorf("Valid(%q, %q) = %v, want %v", p, s, got, want)
		}
		if got := ValidBytes(p, []byte(s)); got != want {
			t.Errorf("ValidBytes(%q, %q) = %v, want %v", p, s, got, want)
		}
	}
	f(Signal, "sig_a", true)
	f(Signal, "sig_"+strings.Repeat("Z", 64), true)
	f(Signal, "sig_-_9", true)
	f(Signal, "sig_"+strings.Repeat("Z", 65), false)
	f(Signal, "sig_", false)
	f(Signal, "sig", false)
	f(Signal, "", false)
	f(Signal, "dec_a", false)
	f(Signal, "sig_a b", false)
	f(Signal, "sig_é", false)
	f(Signal, "sig_a\x00", false)
	f(Signal, "Sig_a", false)
}

func TestMintIsOrderedAndValid(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	a, b := Mint(Key, now), Mint(Key, now.Add(time.Millisecond))
	if a >= b {
		t.Errorf("%q is not before %q", a, b)
	}
	if !Valid(Key, a) || !Valid(Observation, Random(Observation)) {
		t.Error("a minted identifier is not valid")
	}
	if first, second := Random(Observation), Random(Observation); first == second {
		t.Error("two random identifiers are equal")
	}
}

func TestMintedAt(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 678e6, time.UTC)
	for _, id := range []string{Mint(Key, now), RandomAt(Observation, now)} {
		if at, ok := MintedAt(id); !ok || !at.Equal(now) {
			t.Errorf("MintedAt(%q) = %v, %v; want %v", id, at, ok, now)
		}
	}
	for _, id := range []string{"", "obs_", "obs_abc", "obs_" + strings.Repeat("z", 39),
		Random(Observation)} {
		if at, ok := MintedAt(id); ok {
			t.Errorf("MintedAt(%q) = %v", id, at)
		}
	}
}

func TestDeriveSeparatesParts(t *testing.T) {
	if Derive(Item, "con_a", "ab", "c") == Derive(Item, "con_a", "a", "bc") {
		t.Error("moving a character between parts gives the same identifier")
	}
	if Derive(Item, "con_a", "1") == Derive(Item, "con_b", "1") {
		t.Error("two connections share an identifier")
	}
	if got := Derive(Item, "con_a", "1"); got != "itm_nsob4iru337l6uk9kj9g745uiqd1m7s8" || !Valid(Item, got) {
		t.Errorf("derivation changed or is not valid: %q", got)
	}
}

// Clients in other languages derive the same ids; the vectors are published.
func TestDeriveEqualsThePublishedVectors(t *testing.T) {
	text, err := os.ReadFile("../../edge/sdk/testdata/ids.json")
	if err != nil {
		t.Fatal(err)
	}
	var vectors []struct {
		What         string       `json:"what"`
		Prefix       Prefix       `json:"prefix"`
		ConnectionID ConnectionID `json:"connection_id"`
		Parts        []string     `json:"parts"`
		ID           string       `json:"id"`
	}
	if err := json.Unmarshal(text, &vectors); err != nil || len(vectors) < 10 {
		t.Fatalf("%d vectors, %v", len(vectors), err)
	}
	for _, v := range vectors {
		if got := Derive(v.Prefix, v.ConnectionID, v.Parts...); got != v.ID || !Valid(v.Prefix, got) {
			t.Errorf("%s: %s, want %s", v.What, got, v.ID)
		}
	}
}

func TestRequestID(t *testing.T) {
	f := func(s string, want bool) {
		t.Helper()
		if _, ok := RequestID(s); ok != want {
			t.Errorf("RequestID(%q) = %v, want %v", s, ok, want)
		}
	}
	f("a.B-9_", true)
	f(strings.Repeat("a", 128), true)
	f(strings.Repeat("a", 129), false)
	f("", false)
	f("a b", false)
	f("a\n", false)
}

func TestBodyByte(t *testing.T) {
	t.Parallel()
	for c := range 256 {
		want := strings.IndexByte("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-",
			byte(c)) >= 0
		if bodyByte(byte(c)) != want {
			t.Errorf("%q: %t", rune(c), !want)
		}
	}
}
