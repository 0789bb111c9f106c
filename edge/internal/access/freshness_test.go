package access

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"storefront.internal/shared/fault"
	"storefront.internal/shared/storekey"
)

// A change of one key costs the look-up of one key.
func TestAChangeCostsOneKey(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, r *KeyResolver, s *stores) {
		var live [][]byte
		for range 200 {
			live = append(live, s.issue())
		}
		pass(pollInterval)
		all := func() {
			for _, secret := range live {
				expect(t, r, secret, "")
			}
		}
		all()
		reads := func() (store, cache int) {
			pass(0)
			s.set(func() { store, cache = s.storeReads, s.cacheReads })
			return store, cache
		}
		store, cache := reads()
		for range 3 { // issue and revoke, until memory's time is nearly over
			changing := s.issue()
			pass(pollInterval)
			expect(t, r, changing, "")
			s.revoke(changing, true)
			pass(pollInterval)
			expect(t, r, changing, fault.Unauthorized)
			all()
		}
		storeAfter, cacheAfter := reads()
		if store, cache = storeAfter-store, cacheAfter-cache; store > 3 || cache > 6+len(live) {
			t.Errorf("three keys changed twice: %d and %d look-ups", store, cache)
		}
		if n := testutil.ToFloat64(r.cfg.Metrics.emptied); n != 1 {
			t.Errorf("memory was emptied %v times, want once, at the start", n)
		}
	})
}

// PostgreSQL hangs after the edge has seen a change that Redis does not have. Keys that did not change go on
// working, from memory and from Redis, for as long as it lasts.
func TestPostgreSQLHangsBetweenAChangeAndItsCopy(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, r *KeyResolver, s *stores) {
		inMemory, inRedis, revoked := s.issue(), s.issue(), s.issue()
		s.set(func() { s.cached[storekey.Digest(inRedis)] = CacheGranted })
		pass(pollInterval)
		expect(t, r, inMemory, "")
		expect(t, r, revoked, "")
		s.revoke(revoked, false)
		pass(pollInterval)
		s.set(func() { s.storeHangs = true })
		for range 60 {
			pass(time.Second)
			expect(t, r, inMemory, "")
			expect(t, r, inRedis, "")
			if _, err := r.Resolve(t.Context(), revoked); err == nil {
				t.Fatal("the revoked key works")
			}
		}
		s.set(func() { s.publish() })
		pass(pollInterval)
		expect(t, r, revoked, fault.Unauthorized)
		expect(t, r, inMemory, "")
	})
}

// A control of the previous release raises Redis's version and does not say what changed.
func TestControlOfThePreviousRelease(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, r *KeyResolver, s *stores) {
		kept, revoked := s.issue(), s.issue()
		pass(pollInterval)
		expect(t, r, kept, "")
		expect(t, r, revoked, "")
		s.set(func() { s.storeHangs = true })
		s.revoke(revoked, false)
		s.set(func() { s.publishVersionOnly() })
		before := testutil.ToFloat64(r.cfg.Metrics.emptied)
		for range 10 {
			pass(pollInterval)
			expect(t, r, kept, "") // Redis has it
			expect(t, r, revoked, fault.Unauthorized)
		}
		if n := testutil.ToFloat64(r.cfg.Metrics.emptied) - before; n != 1 {
			t.Errorf("memory was emptied %v times for one change", n)
		}
		s.set(func() { s.storeHangs = false })
		pass(2 * pollInterval)
		expect(t, r, kept, "")
		expect(t, r, revoked, fault.Unauthorized)
	})
}

// A restored PostgreSQL gives versions a second time. Tokens tell that, whatever the version is by then.
func TestRestoredPostgreSQL(t *testing.T) {
	t.Parallel()
	for behind := range 4 { // how many changes fewer it has when the edge asks
		play(t, func(t *testing.T, r *KeyResolver, s *stores) {
			kept, revoked := s.issue(), s.issue()
			copied, keys := slices.Clone(s.changes), len(s.keys)
			for range 3 {
				s.issue() // lost
			}
			pass(pollInterval)
			expect(t, r, kept, "")
			expect(t, r, revoked, "")
			s.set(func() { s.changes, s.version = copied, int64(keys) })
			s.revoke(revoked, false)
			s.set(func() { s.cached[storekey.Digest(revoked)] = CacheRevoked }) // control has not noticed yet
			for range 3 - behind {
				s.set(func() { s.change(storekey.Digest(kept)) })
			}
			pass(pollInterval)
			if _, err := r.Resolve(t.Context(), revoked); err == nil {
				t.Errorf("%d behind: a key works that was revoked after the restore", behind)
			}
			s.set(func() { s.cached[storekey.Digest(kept)] = CacheEmpty })
			expect(t, r, kept, "")
		})
	}
}

// forgotten is what a freshness forgot.
type forgotten struct {
	digests []Digest
	all     int
}

func watched() (*freshness, *forgotten) {
	got := &forgotten{}
	return newFreshness(func(changes []storekey.Change, all bool) {
		if all {
			got.all++
		}
		for _, c := range changes {
			got.digests = append(got.digests, c.Digest)
		}
	}), got
}

// logUpTo has a change of key n for each version n.
func logUpTo(version int64, since storekey.Change, known bool) Log {
	changes := []storekey.Change{{Token: "begin"}}
	for v := int64(1); v <= version; v++ {
		changes = append(changes, storekey.Change{Version: v, Token: fmt.Sprint("t", v),
			Digest: Digest{byte(v), byte(v >> 8), byte(v >> 16), 1}})
	}
	return answer(version, changes, since, known)
}

func TestChangesAreFollowed(t *testing.T) {
	t.Parallel()
	f, got := watched()
	at := time.Unix(1000, 0)
	store := func(version int64) {
		since, known := f.asked()
		f.recordStore(logUpTo(version, since, known), since, at)
	}
	cache := func(version int64) {
		since, known := f.asked()
		f.recordCache(logUpTo(version, since, known), true, at)
	}
	expect := func(what string, all, digests int) {
		t.Helper()
		if got.all != all || len(got.digests) != digests {
			t.Errorf("%s: emptied %d times, forgot %d keys; want %d and %d", what, got.all, len(got.digests),
				all, digests)
		}
	}
	store(9)
	expect("the first answer", 1, 0)
	store(9)
	cache(9)
	expect("nothing new", 1, 0)
	store(12)
	expect("three changes", 1, 3)
	cache(12)
	expect("the same from the cache", 1, 3)
	cache(14)
	store(14)
	expect("two more, first from the cache", 1, 5)
	asked, _ := f.asked()
	late := logUpTo(14, asked, true)
	cache(15)
	f.recordStore(late, asked, at)
	expect("an answer that was overtaken", 1, 6)
	cache(13)
	expect("a cache that went back", 2, 6)
	store(10)
	expect("a store that went back", 3, 6)
	store(10 + MaxChanges + 1)
	expect("more changes than an answer holds", 4, 6)
	gap := logUpTo(10+MaxChanges+1, storekey.Change{}, false)
	gap.Version++
	f.recordStore(gap, gap.Changes[0], at)
	expect("a version without its change", 5, 6)
}

// A cache that is behind is trusted for the keys that have not changed since.
func TestCacheThatIsBehind(t *testing.T) {
	t.Parallel()
	f, _ := watched()
	at := time.Unix(1000, 0)
	record := func(store, cache int64) {
		since, known := f.asked()
		f.recordStore(logUpTo(store, since, known), since, at)
		since, known = f.asked()
		f.recordCache(logUpTo(cache, since, known), true, at)
	}
	changed, other := Digest{11, 0, 0, 1}, Digest{200, 0, 0, 1}
	record(9, 9)
	record(12, 10)
	if f.cacheTrusted(changed, at) || !f.cacheTrusted(other, at) {
		t.Error("the changed key is trusted, or another is not")
	}
	if f.cacheTrusted(other, at.Add(maxUnconfirmed+1)) {
		t.Error("an old answer is trusted")
	}
	if _, confirmed := f.state(at.Add(maxUnconfirmed)); !confirmed {
		t.Error("a cache that is behind does not confirm")
	}
	record(12, 12)
	if !f.cacheTrusted(changed, at) {
		t.Error("a complete cache is not trusted")
	}
	f.recordCache(Log{Version: 12, Changes: []storekey.Change{{Version: 12, Token: "other"}}}, true, at)
	if f.cacheTrusted(other, at) {
		t.Error("a cache with another history is trusted")
	}
	f.recordCache(Log{Version: 3, Changes: logUpTo(3, storekey.Change{}, false).Changes}, true, at)
	if f.cacheTrusted(other, at) {
		t.Error("a cache from before what is remembered is trusted")
	}
}

func TestRecentChangesAreBounded(t *testing.T) {
	t.Parallel()
	f, _ := watched()
	at := time.Unix(1000, 0)
	f.recordStore(logUpTo(1, storekey.Change{}, false), storekey.Change{}, at)
	old := f.stamp(Digest{1})
	const step = 4000
	for v := int64(step); v <= 5*step; v += step {
		since, known := f.asked()
		f.recordStore(logUpTo(v, since, known), since, at)
	}
	if len(f.recent) != maxRecent || len(f.changed) != maxRecent || f.floor != 5*step-maxRecent {
		t.Errorf("%d changes, %d keys, floor %d", len(f.recent), len(f.changed), f.floor)
	}
	f.unlessChanged(Digest{1}, old, func() { t.Error("a look-up from before the floor counts") })
	f.unlessChanged(Digest{1}, f.stamp(Digest{1}), func() { old.version = -1 })
	if old.version != -1 {
		t.Error("a new look-up does not count")
	}
}
