package claimstest

import (
	"crypto/rand"
	"slices"
	"testing"
	"time"

	"storefront.internal/edge/internal/intake"
)

// Subject is an implementation under test, empty and marked by nobody, with hands on what lies behind it.
type Subject struct {
	Claims   intake.Claims
	Age      func(t *testing.T, key intake.ClaimKey, by time.Duration) // makes a claim older
	AgeEpoch func(t *testing.T, by time.Duration)
}

// Conformance is what the protocol relies on.
func Conformance(t *testing.T, open func(t *testing.T) Subject) {
	t.Run("take", func(t *testing.T) { t.Parallel(); testTake(t, open(t)) })
	t.Run("register", func(t *testing.T) { t.Parallel(); testRegister(t, open(t)) })
	t.Run("seize", func(t *testing.T) { t.Parallel(); testSeize(t, open(t)) })
	t.Run("age", func(t *testing.T) { t.Parallel(); testAge(t, open(t)) })
	t.Run("epoch", func(t *testing.T) { t.Parallel(); testEpoch(t, open(t)) })
	t.Run("warm epoch", func(t *testing.T) { t.Parallel(); testWarmEpoch(t, open(t)) })
}

// Keys returns keys that nobody else has.
func Keys(n int) []intake.ClaimKey {
	keys := make([]intake.ClaimKey, n)
	for i := range keys {
		_, _ = rand.Read(keys[i][:])
	}
	return keys
}

func take(t *testing.T, s Subject, keys []intake.ClaimKey, holder string, want ...string) intake.Epoch {
	t.Helper()
	previous := make([]string, len(keys))
	epoch, err := s.Claims.Take(t.Context(), keys, holder, previous)
	if err != nil || !slices.Equal(previous, want) {
		t.Errorf("Take by %s: %q, %v; want %q", holder, previous, err, want)
	}
	return epoch
}

func testTake(t *testing.T, s Subject) {
	k := Keys(3)
	take(t, s, k[:2], "a:1", "", "")
	take(t, s, k[:2], "a:1", "a:1", "a:1")
	take(t, s, k, "b:2", "a:1", "a:1", "")
	take(t, s, k, "c:3", "a:1", "a:1", "b:2")
}

func mark(t *testing.T, s Subject, state intake.Register, attempts []string, want ...intake.Register) {
	t.Helper()
	previous := make([]intake.Register, len(attempts))
	if err := s.Claims.Mark(t.Context(), attempts, state, previous); err != nil || !slices.Equal(previous, want) {
		t.Errorf("Mark %s: %q, %v; want %q", state, previous, err, want)
	}
}

func look(t *testing.T, s Subject, attempts []string, keys []intake.ClaimKey) ([]intake.Register, []time.Duration) {
	t.Helper()
	registers, ages := make([]intake.Register, len(attempts)), make([]time.Duration, len(keys))
	if err := s.Claims.Look(t.Context(), attempts, registers, keys, ages); err != nil {
		t.Errorf("Look: %v", err)
	}
	return registers, ages
}

func testRegister(t *testing.T, s Subject) {
	id := rand.Text()
	attempts := []string{id + "1", id + "2", id + "3"}
	mark(t, s, intake.Done, attempts[:1], intake.Open)
	mark(t, s, intake.Lost, attempts[:2], intake.Done, intake.Open)
	mark(t, s, intake.Released, attempts, intake.Done, intake.Lost, intake.Open)
	mark(t, s, intake.Done, attempts, intake.Done, intake.Lost, intake.Released)
	registers, _ := look(t, s, append(attempts, id+"4"), nil)
	if want := []intake.Register{intake.Done, intake.Lost, intake.Released, intake.Open}; !slices.Equal(registers, want) {
		t.Errorf("registers %q, want %q", registers, want)
	}
}

func testSeize(t *testing.T, s Subject) {
	k := Keys(3)
	take(t, s, k[:2], "a:1", "", "")
	seize := func(holder string, from []string, want ...bool) {
		t.Helper()
		won := make([]bool, len(k))
		if err := s.Claims.Seize(t.Context(), k, from, holder, won); err != nil || !slices.Equal(won, want) {
			t.Errorf("Seize by %s: %v, %v; want %v", holder, won, err, want)
		}
	}
	seize("b:2", []string{"a:1", "x:1", "a:1"}, true, false, false)
	seize("c:3", []string{"a:1", "a:1", ""}, false, true, false)
	take(t, s, k, "d:4", "b:2", "c:3", "")
}

// testAge: a claim's age is told by the server; taking over begins a new life; one that is gone is young and free.
func testAge(t *testing.T, s Subject) {
	const minute = time.Minute
	k := Keys(2)
	take(t, s, k[:1], "a:1", "")
	s.Age(t, k[0], 11*time.Second)
	_, ages := look(t, s, nil, k)
	if ages[0] < 11*time.Second || ages[0] > minute || ages[1] != 0 {
		t.Errorf("ages %v, want 11s and a little, 0", ages)
	}
	won := make([]bool, 1)
	if err := s.Claims.Seize(t.Context(), k[:1], []string{"a:1"}, "b:2", won); err != nil || !won[0] {
		t.Errorf("Seize: %v, %v", won, err)
	}
	if _, ages = look(t, s, nil, k[:1]); ages[0] > 10*time.Second {
		t.Errorf("age after the takeover: %v", ages)
	}
	s.Age(t, k[0], intake.ClaimLife)
	if _, ages = look(t, s, nil, k[:1]); ages[0] != 0 {
		t.Errorf("age after its life: %v", ages)
	}
	take(t, s, k[:1], "c:3", "")
}

func testEpoch(t *testing.T, s Subject) {
	k := Keys(1)
	epoch := func(want intake.Epoch) {
		t.Helper()
		previous := make([]string, 1)
		if got, err := s.Claims.Take(t.Context(), k, "a:1", previous); err != nil || got != want {
			t.Errorf("epoch %d, %v; want %d", got, err, want)
		}
	}
	markEpoch := func(warm bool) {
		t.Helper()
		if err := s.Claims.MarkEpoch(t.Context(), k, warm); err != nil {
			t.Errorf("MarkEpoch: %v", err)
		}
	}
	epoch(intake.Unmarked)
	markEpoch(false)
	epoch(intake.Cold)
	markEpoch(true) // the first mark stays
	epoch(intake.Cold)
	s.AgeEpoch(t, intake.ClaimLife-time.Minute)
	epoch(intake.Cold)
	s.AgeEpoch(t, time.Minute)
	epoch(intake.Warm)
	markEpoch(false)
	epoch(intake.Warm)
}

func testWarmEpoch(t *testing.T, s Subject) {
	k := Keys(1)
	if err := s.Claims.MarkEpoch(t.Context(), k, true); err != nil {
		t.Errorf("MarkEpoch: %v", err)
	}
	if got := take(t, s, k, "a:1", ""); got != intake.Warm {
		t.Errorf("epoch %d, want warm", got)
	}
}
