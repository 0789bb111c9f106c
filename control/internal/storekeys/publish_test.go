package storekeys

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"pgregory.net/rapid"

	"storefront.internal/shared/ident"
	"storefront.internal/shared/storekey"
)

// TestTrustedRedisNeverGrantsARevokedKey runs random interleavings of issues, revocations, pushes that fail
// half way, sweeps, late fills of edges, controls of the previous release, and a Redis that loses data or
// becomes an older copy of itself.
func TestTrustedRedisNeverGrantsARevokedKey(t *testing.T) {
	t.Parallel()
	for range 20 { // some faults show in one of ten thousand runs; a run takes microseconds
		rapid.Check(t, playWorld)
	}
}

func playWorld(t *rapid.T) {
	w := newWorld()
	depth := 0
	var act func()
	w.between = func(string) bool {
		if depth < 2 && rapid.IntRange(0, 5).Draw(t, "between") == 0 {
			act()
		}
		return rapid.IntRange(0, 9).Draw(t, "away") == 0
	}
	act = func() {
		depth++
		defer func() { depth-- }()
		w.act(t, publisher(w)) // each time another process
		w.check(t)
	}
	for range rapid.IntRange(1, 40).Draw(t, "acts") {
		act()
	}
	// When the failures end, Redis is complete.
	w.between = func(string) bool { return false }
	err := publisher(w).Sweep(t.Context())
	if err != nil || w.redis.version != w.version ||
		!w.redis.log[len(w.redis.log)-1].Same(w.changes[len(w.changes)-1]) {
		t.Fatalf("Redis stays at %d of %d: %v", w.redis.version, w.version, err)
	}
	w.check(t)
}

func (w *world) act(t *rapid.T, p *Publisher) {
	id := ident.KeyID(fmt.Sprintf("key_%d", rapid.IntRange(0, max(0, len(w.keys)-1)).Draw(t, "key")))
	k, known := w.keys[id]
	switch rapid.IntRange(0, 11).Draw(t, "act") {
	case 0:
		w.issue(true)
	case 1:
		w.issue(false)
	case 2, 3:
		if known {
			w.revoke(k)
			_ = p.PushRevocation(t.Context(), Revocation{KeyID: id},
				storekey.Change{Version: k.changed, Digest: k.digest})
		}
	case 4:
		if known {
			w.revoke(k)
		}
	case 5:
		if known {
			_ = p.Push(t.Context(), k.changed) // may fail half way
		}
	case 6:
		_ = p.Sweep(t.Context())
	case 7:
		w.flush()
	case 8:
		w.copy()
	case 9:
		if len(w.copies) > 0 {
			w.restore(rapid.IntRange(0, len(w.copies)-1).Draw(t, "copy"))
		}
	case 10: // an edge reads a live key, or writes what it read before
		if known && !k.revoked {
			w.fills = append(w.fills, *k)
		} else if len(w.fills) > 0 {
			w.fill(w.fills[0].digest)
			w.fills = w.fills[1:]
		}
	case 11:
		if known {
			w.previousPush(t, k)
		}
	}
}

func TestChangesAreCopiedInTheirOrder(t *testing.T) {
	t.Parallel()
	w := newWorld()
	p := publisher(w)
	if err := p.Sweep(t.Context()); err != nil || w.redis.version != 0 || len(w.redis.log) != 1 {
		t.Fatalf("an empty Redis: %+v, %v", w.redis, err)
	}
	const many = 2*maxChanges + 3
	for range many {
		w.issue(true)
	}
	if err := p.Push(t.Context(), 1); err != nil { // copies the later changes too
		t.Fatal(err)
	}
	if w.redis.version != many || len(w.redis.records) != many || !slices.Equal(w.redis.log, w.changes) {
		t.Errorf("version %d, %d records, %d changes", w.redis.version, len(w.redis.records),
			len(w.redis.log))
	}
	w.between = func(string) bool { return true }
	if err := p.Push(t.Context(), many); err != nil {
		t.Errorf("a change that was copied with others: %v", err)
	}
	if err := p.Push(t.Context(), many+1); err == nil {
		t.Error("a change was pushed while the stores were away")
	}
}

// Many keys that change at once are copied together.
func TestConcurrentPushesAreCopiedTogether(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		p := publisher(w)
		if err := p.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		appends := 0
		w.between = func(step string) bool {
			if step == "append" {
				appends++
				time.Sleep(time.Millisecond)
			}
			return false
		}
		var wg sync.WaitGroup
		push := func(version int64) {
			wg.Go(func() {
				if err := p.Push(t.Context(), version); err != nil {
					t.Error(err)
				}
			})
		}
		w.issue(true)
		push(1)
		synctest.Wait() // it copies
		for range 100 {
			w.issue(true)
			push(w.version)
		}
		wg.Wait()
		if appends != 2 || w.redis.version != w.version {
			t.Errorf("%d copies for 101 changes, version %d of %d", appends, w.redis.version, w.version)
		}
	})
}

// A revocation whose push fails in PostgreSQL has a tombstone all the same.
func TestATombstoneNeedsNoPostgreSQL(t *testing.T) {
	t.Parallel()
	w := newWorld()
	p := publisher(w)
	w.issue(true)
	if err := p.Push(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	k := w.keys["key_0"]
	w.revoke(k)
	w.between = func(step string) bool { return step == "changes" }
	if err := p.PushRevocation(t.Context(), Revocation{KeyID: "key_0"}, storekey.Change{Version: 2,
		Digest: k.digest}); err == nil {
		t.Error("no error")
	}
	if w.redis.records[k.digest] != "revoked" || w.redis.version != 1 {
		t.Errorf("record %q, version %d", w.redis.records[k.digest], w.redis.version)
	}
}

func TestPostgresBecomesAnOlderCopy(t *testing.T) {
	t.Parallel()
	w := newWorld()
	p := publisher(w)
	w.issue(true)
	if err := p.Push(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	w.redis.version = 10 // what a PostgreSQL that is gone had published
	if err := p.Sweep(t.Context()); err != nil || w.redis.version != 1 {
		t.Errorf("version %d, %v", w.redis.version, err)
	}
}

// TestARestoredPostgresRevokesAgain: PostgreSQL becomes an older copy of itself, from before a revocation. It
// is noticed even when its version has reached the old one by the time that control looks.
func TestARestoredPostgresRevokesAgain(t *testing.T) {
	t.Parallel()
	for _, failing := range []string{"", "unrevoked", "look", "revoke", "reset", "newest"} {
		for issued := range 3 {
			w := newWorld()
			p := publisher(w)
			w.issue(true)
			w.issue(true)
			if err := p.Push(t.Context(), 2); err != nil {
				t.Fatal(err)
			}
			before, version, changes := *w.keys["key_0"], w.version, slices.Clone(w.changes)
			w.revoke(w.keys["key_0"])
			if err := p.Push(t.Context(), 3); err != nil {
				t.Fatal(err)
			}
			*w.keys["key_0"], w.version, w.changes = before, version, changes
			for range issued {
				w.issue(true)
			}
			failed := false
			w.between = func(step string) bool {
				fail := step == failing && !failed
				failed = failed || fail
				return fail
			}
			for range 2 { // the second sweep repairs what the first could not
				_ = p.Sweep(t.Context())
			}
			if !w.keys["key_0"].revoked || w.keys["key_1"].revoked {
				t.Errorf("%q fails once, %d issued: %+v", failing, issued, w.keys)
			}
			if err := p.Publish(t.Context()); err != nil || w.redis.version != w.version {
				t.Errorf("%q fails once: version %d of %d, %v", failing, w.redis.version, w.version, err)
			}
			w.check(t)
		}
	}
}

// A revocation whose push failed, so that Redis' log lacks it, is repeated after PostgreSQL is restored to a
// time before it. It is not repeated once it is published: a key is not revoked by an older tombstone.
func TestARevocationThatWasNotPublishedIsRepeated(t *testing.T) {
	t.Parallel()
	for _, failing := range []string{"tombstones", "head", "changes", "append"} {
		w := newWorld()
		p := publisher(w)
		w.issue(true)
		if err := p.Push(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		before, version, changes := *w.keys["key_0"], w.version, slices.Clone(w.changes)
		w.revoke(w.keys["key_0"])
		w.between = func(step string) bool { return step == failing }
		change := storekey.Change{Version: 2, Digest: before.digest}
		if err := p.PushRevocation(t.Context(), Revocation{KeyID: "key_0"}, change); err == nil {
			t.Errorf("%q fails: no error", failing)
		}
		*w.keys["key_0"], w.version, w.changes = before, version, changes
		if err := p.Sweep(t.Context()); failing != "tombstones" && err == nil {
			t.Errorf("%q fails: the sweep does not", failing)
		}
		w.between = func(string) bool { return false }
		if err := p.Sweep(t.Context()); err != nil || !w.keys["key_0"].revoked {
			t.Errorf("%q failed: %+v, %v", failing, w.keys["key_0"], err)
		}
		if w.redis.version != w.version || len(p.failed.list()) != 0 {
			t.Errorf("%q failed: version %d of %d, %v", failing, w.redis.version, w.version, p.failed.list())
		}
		w.check(t)
	}
}

// A Redis that is older than all changes that PostgreSQL keeps is no sign of a restore.
func TestARedisOlderThanAllChanges(t *testing.T) {
	t.Parallel()
	w := newWorld()
	p := publisher(w)
	w.issue(true)
	if err := p.Push(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	w.fill(w.keys["key_0"].digest)
	for range 10 {
		w.issue(true)
	}
	w.revoke(w.keys["key_0"])
	if err := w.DeleteChanges(t.Context(), 3); err != nil {
		t.Fatal(err)
	}
	w.between = func(step string) bool {
		if step == "unrevoked" {
			t.Error("it is taken for a restore")
		}
		return false
	}
	if err := p.Sweep(t.Context()); err != nil || w.redis.version != w.version {
		t.Errorf("version %d of %d, %v", w.redis.version, w.version, err)
	}
	w.check(t)
}

func TestRunSweepsUntilItsContextEnds(t *testing.T) {
	t.Parallel()
	w := newWorld()
	ctx, cancel := context.WithCancel(t.Context())
	w.between = func(step string) bool {
		if step == "delete" && w.redis.version == 0 {
			cancel()
		}
		return false
	}
	if err := publisher(w).Run(ctx); err != nil || w.redis.version != 0 {
		t.Errorf("%v, version %d", err, w.redis.version)
	}
}

// hangingRedis answers nothing.
type hangingRedis struct{ *world }

func (hangingRedis) PutTombstones(ctx context.Context, _ [][32]byte) error {
	<-ctx.Done()
	return ctx.Err()
}

// revoking is a store whose key was revoked.
type revoking struct{ Store }

func (revoking) RevokeKey(context.Context, ident.ConnectionID, ident.KeyID) (storekey.Change, error) {
	return storekey.Change{Version: 2}, nil
}

// A Redis that hangs does not fail a revocation, and delays its answer by less than half a second.
func TestAHangingRedisHardlyDelaysARevocation(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.issue(true)
		id := slices.Collect(maps.Keys(w.keys))[0]
		w.revoke(w.keys[id])
		discard := slog.New(slog.DiscardHandler)
		s := New(Config{Store: revoking{}, Logger: discard, Now: time.Now, Publisher: NewPublisher(w,
			hangingRedis{w}, NewMetrics(prometheus.NewRegistry()), discard)})
		began := time.Now()
		if err := s.Revoke(t.Context(), "con_1", id); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took == 0 || took > 500*time.Millisecond {
			t.Errorf("the answer took %s", took)
		}
	})
}
