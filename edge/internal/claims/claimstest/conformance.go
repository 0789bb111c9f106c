package claimstest

import (
	"crypto/rand"
	"slices"
	"testing"
	"time"

	"storefront.internal/edge/internal/claims"
)

// Subject is an implementation under test, which holds nothing and no epoch, with access to the Redis behind
// it.
type Subject struct {
	Store    claims.Store
	Age      func(t *testing.T, key claims.Key, by time.Duration) // makes a claim older
	AgeEpoch func(t *testing.T, by time.Duration)
}

// Conformance tests what the protocol relies on.
func Conformance(t *testing.T, open func(t *testing.T) Subject) {
	t.Run("claim", func(t *testing.T) { t.Parallel(); testClaim(t, open(t)) })
	t.Run("status", func(t *testing.T) { t.Parallel(); testStatus(t, open(t)) })
	t.Run("compare and swap", func(t *testing.T) { t.Parallel(); testCompareAndSwap(t, open(t)) })
	t.Run("age", func(t *testing.T) { t.Parallel(); testAge(t, open(t)) })
	t.Run("epoch", func(t *testing.T) { t.Parallel(); testEpoch(t, open(t)) })
	t.Run("complete epoch", func(t *testing.T) { t.Parallel(); testCompleteEpoch(t, open(t)) })
}

// Keys returns random keys.
func Keys(n int) []claims.Key {
	keys := make([]claims.Key, n)
	for i := range keys {
		_, _ = rand.Read(keys[i][:])
	}
	return keys
}

func claimAll(t *testing.T, s Subject, keys []claims.Key, holder string, want ...string) claims.Memory {
	t.Helper()
	previous := make([]string, len(keys))
	memory, err := s.Store.Claim(t.Context(), keys, holder, previous)
	if err != nil || !slices.Equal(previous, want) {
		t.Errorf("Claim by %s: %q, %v; want %q", holder, previous, err, want)
	}
	return memory
}

func testClaim(t *testing.T, s Subject) {
	k := Keys(3)
	claimAll(t, s, k[:2], "a:1", "", "")
	claimAll(t, s, k[:2], "a:1", "a:1", "a:1")
	claimAll(t, s, k, "b:2", "a:1", "a:1", "")
	claimAll(t, s, k, "c:3", "a:1", "a:1", "b:2")
}

func resolve(t *testing.T, s Subject, status claims.Status, attempts []string, want ...claims.Status) {
	t.Helper()
	previous := make([]claims.Status, len(attempts))
	if err := s.Store.Resolve(t.Context(), attempts, status, previous); err != nil ||
		!slices.Equal(previous, want) {
		t.Errorf("Resolve %s: %q, %v; want %q", status, previous, err, want)
	}
}

func inspect(t *testing.T, s Subject, attempts []string,
	keys []claims.Key) ([]claims.Status, []time.Duration) {
	t.Helper()
	statuses, ages := make([]claims.Status, len(attempts)), make([]time.Duration, len(keys))
	if err := s.Store.Inspect(t.Context(), attempts, statuses, keys, ages); err != nil {
		t.Errorf("Inspect: %v", err)
	}
	return statuses, ages
}

func testStatus(t *testing.T, s Subject) {
	id := rand.Text()
	attempts := []string{id + "1", id + "2", id + "3"}
	resolve(t, s, claims.Done, attempts[:1], claims.Open)
	resolve(t, s, claims.Lost, attempts[:2], claims.Done, claims.Open)
	resolve(t, s, claims.Released, attempts, claims.Done, claims.Lost, claims.Open)
	resolve(t, s, claims.Done, attempts, claims.Done, claims.Lost, claims.Released)
	statuses, _ := inspect(t, s, append(attempts, id+"4"), nil)
	if want := []claims.Status{claims.Done, claims.Lost, claims.Released,
		claims.Open}; !slices.Equal(statuses, want) {
		t.Errorf("statuses %q, want %q", statuses, want)
	}
}

func testCompareAndSwap(t *testing.T, s Subject) {
	k := Keys(3)
	claimAll(t, s, k[:2], "a:1", "", "")
	swap := func(holder string, from []string, want ...bool) {
		t.Helper()
		swapped := make([]bool, len(k))
		if err := s.Store.CompareAndSwap(t.Context(), k, from, holder, swapped); err != nil ||
			!slices.Equal(swapped, want) {
			t.Errorf("CompareAndSwap by %s: %v, %v; want %v", holder, swapped, err, want)
		}
	}
	swap("b:2", []string{"a:1", "x:1", "a:1"}, true, false, false)
	swap("c:3", []string{"a:1", "a:1", ""}, false, true, false)
	claimAll(t, s, k, "d:4", "b:2", "c:3", "")
}

// testAge: the server tells the age of a claim; taking it over begins a new TTL; a claim that is gone has age
// 0 and is free.
func testAge(t *testing.T, s Subject) {
	const minute = time.Minute
	k := Keys(2)
	claimAll(t, s, k[:1], "a:1", "")
	s.Age(t, k[0], 11*time.Second)
	_, ages := inspect(t, s, nil, k)
	if ages[0] < 11*time.Second || ages[0] > minute || ages[1] != 0 {
		t.Errorf("ages %v, want a little over 11s, and 0", ages)
	}
	swapped := make([]bool, 1)
	if err := s.Store.CompareAndSwap(t.Context(), k[:1], []string{"a:1"}, "b:2", swapped); err != nil ||
		!swapped[0] {
		t.Errorf("CompareAndSwap: %v, %v", swapped, err)
	}
	if _, ages = inspect(t, s, nil, k[:1]); ages[0] > 10*time.Second {
		t.Errorf("age after the takeover: %v", ages)
	}
	s.Age(t, k[0], claims.ClaimTTL)
	if _, ages = inspect(t, s, nil, k[:1]); ages[0] != 0 {
		t.Errorf("age after its TTL: %v", ages)
	}
	claimAll(t, s, k[:1], "c:3", "")
}

func testEpoch(t *testing.T, s Subject) {
	k := Keys(1)
	memory := func(want claims.Memory) {
		t.Helper()
		previous := make([]string, 1)
		if got, err := s.Store.Claim(t.Context(), k, "a:1", previous); err != nil || got != want {
			t.Errorf("memory %d, %v; want %d", got, err, want)
		}
	}
	startEpoch := func(complete bool) {
		t.Helper()
		if err := s.Store.StartEpoch(t.Context(), k, complete); err != nil {
			t.Errorf("StartEpoch: %v", err)
		}
	}
	memory(claims.Unknown)
	startEpoch(false)
	memory(claims.RecentlyLost)
	startEpoch(true) // the first one stays
	memory(claims.RecentlyLost)
	s.AgeEpoch(t, claims.ClaimTTL-time.Minute)
	memory(claims.RecentlyLost)
	s.AgeEpoch(t, time.Minute)
	memory(claims.Known)
	startEpoch(false)
	memory(claims.Known)
}

func testCompleteEpoch(t *testing.T, s Subject) {
	k := Keys(1)
	if err := s.Store.StartEpoch(t.Context(), k, true); err != nil {
		t.Errorf("StartEpoch: %v", err)
	}
	if got := claimAll(t, s, k, "a:1", ""); got != claims.Known {
		t.Errorf("memory %d, want known", got)
	}
}
