package storekeys

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"pgregory.net/rapid"

	"storefront.internal/shared/fault"
	"storefront.internal/shared/ident"
	"storefront.internal/shared/storekey"
)

// world is the part of PostgreSQL and Redis that keys use. Before each of its steps something else may
// happen, so that a run is an interleaving of controls, edges and failures.
type world struct {
	keys    map[ident.KeyID]*KeyState
	version int64
	redis   cacheState
	copies  []cacheState // what Redis once was
	fills   []KeyState   // edges that have read a live key and not written it yet
	between func(step string) (failed bool)
}

type cacheState struct {
	version int64
	records map[[32]byte]string
}

func newWorld() *world {
	w := &world{keys: map[ident.KeyID]*KeyState{}, redis: cacheState{NoVersion, map[[32]byte]string{}}}
	w.between = func(string) bool { return false }
	return w
}

var errAway = errors.New("away")

func (w *world) step(name string) error {
	if w.between(name) {
		return errAway
	}
	return nil
}

func (w *world) KeyState(_ context.Context, k ident.KeyID) (KeyState, error) {
	if err := w.step("state"); err != nil {
		return KeyState{}, err
	}
	s, ok := w.keys[k]
	if !ok {
		return KeyState{}, fault.New(fault.NotFound, "")
	}
	return *s, nil
}

func (w *world) MarkPushed(_ context.Context, k ident.KeyID, changed int64) error {
	if err := w.step("mark"); err != nil {
		return err
	}
	w.keys[k].Pushed = max(w.keys[k].Pushed, changed)
	return nil
}

func (w *world) CompleteVersion(context.Context) (int64, error) {
	if err := w.step("complete"); err != nil {
		return 0, err
	}
	complete := w.version
	for _, k := range w.keys {
		if k.Pushed < k.Changed {
			complete = min(complete, k.Changed-1)
		}
	}
	return complete, nil
}

func (w *world) RevokedAfter(_ context.Context, version int64,
	_ time.Duration) (digests [][32]byte, err error) {
	if err := w.step("revoked"); err != nil {
		return nil, err
	}
	for _, k := range w.keys {
		if k.Revoked && k.Changed > version {
			digests = append(digests, k.Digest)
		}
	}
	return digests, nil
}

func (w *world) UnrevokedKeys(context.Context) (keys []UnrevokedKey, err error) {
	if err := w.step("unrevoked"); err != nil {
		return nil, err
	}
	for id, k := range w.keys {
		if !k.Revoked {
			keys = append(keys, UnrevokedKey{ID: id, Digest: k.Digest})
		}
	}
	return keys, nil
}

func (w *world) RevokeKey(_ context.Context, _ ident.ConnectionID, id ident.KeyID) error {
	if err := w.step("revoke"); err != nil {
		return err
	}
	w.revoke(w.keys[id])
	return nil
}

func (w *world) Tombstones(_ context.Context, digests [][32]byte) ([]bool, error) {
	revoked := make([]bool, len(digests))
	for i, d := range digests {
		revoked[i] = w.redis.records[d] == "revoked"
	}
	return revoked, w.step("look")
}

func (w *world) PutGrant(_ context.Context, d [32]byte, _ storekey.Grant) error {
	if err := w.step("grant"); err != nil {
		return err
	}
	w.fill(d)
	return nil
}

func (w *world) fill(d [32]byte) {
	if _, there := w.redis.records[d]; !there {
		w.redis.records[d] = "grant"
	}
}

func (w *world) PutTombstones(_ context.Context, digests [][32]byte) error {
	if err := w.step("tombstones"); err != nil {
		return err
	}
	for _, d := range digests {
		w.redis.records[d] = "revoked"
	}
	return nil
}

func (w *world) Version(context.Context) (int64, error) {
	return w.redis.version, w.step("version")
}

func (w *world) SwapVersion(_ context.Context, old, version int64, revoked [][32]byte) (bool, error) {
	if err := w.step("swap"); err != nil {
		return false, err
	}
	if w.redis.version != old {
		return false, nil
	}
	for _, d := range revoked {
		w.redis.records[d] = "revoked"
	}
	w.redis.version = version
	return true, nil
}

// check checks what the edges rely on.
func (w *world) check(t interface{ Fatalf(string, ...any) }) {
	if w.redis.version < w.version {
		return // an edge asks PostgreSQL
	}
	for id, k := range w.keys {
		if k.Revoked && w.redis.records[k.Digest] == "grant" {
			t.Fatalf("key %s is revoked by version %d and Redis, trusted at %d, grants it", id,
				k.Changed, w.redis.version)
		}
	}
}

func (w *world) issue() {
	w.version++
	id := ident.KeyID(fmt.Sprintf("key_%d", len(w.keys)))
	w.keys[id] = &KeyState{Digest: storekey.Digest([]byte(id)), Changed: w.version}
}

func (w *world) revoke(k *KeyState) {
	if !k.Revoked {
		w.version++
		k.Revoked, k.Changed = true, w.version
	}
}

func (w *world) flush() { w.redis = cacheState{NoVersion, map[[32]byte]string{}} }

func (w *world) copy() {
	w.copies = append(w.copies, cacheState{w.redis.version, maps.Clone(w.redis.records)})
}

func (w *world) restore(i int) {
	w.redis = cacheState{w.copies[i].version, maps.Clone(w.copies[i].records)}
}

func publisher(w *world) *Publisher {
	return NewPublisher(w, w, NewMetrics(prometheus.NewRegistry()), slog.New(slog.DiscardHandler))
}

// TestTrustedRedisNeverGrantsARevokedKey runs random interleavings of issues, revocations, pushes that fail
// half way, sweeps, late fills of edges, and a Redis that loses data or becomes an older copy of itself.
func TestTrustedRedisNeverGrantsARevokedKey(t *testing.T) {
	t.Parallel()
	for range 20 { // some faults show in one of ten thousand runs; a run takes microseconds
		rapid.Check(t, playWorld)
	}
}

func playWorld(t *rapid.T) {
	w := newWorld()
	p := publisher(w)
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
		w.act(t, p)
		w.check(t)
	}
	for range rapid.IntRange(1, 40).Draw(t, "acts") {
		act()
	}
	// When the failures end, Redis is complete.
	w.between = func(string) bool { return false }
	for id := range w.keys {
		if err := p.Push(t.Context(), id); err != nil {
			t.Fatalf("push: %v", err)
		}
	}
	if err := p.Sweep(t.Context()); err != nil || w.redis.version != w.version {
		t.Fatalf("Redis stays at %d of %d: %v", w.redis.version, w.version, err)
	}
	w.check(t)
}

func (w *world) act(t *rapid.T, p *Publisher) {
	id := ident.KeyID(fmt.Sprintf("key_%d", rapid.IntRange(0, max(0, len(w.keys)-1)).Draw(t, "key")))
	k, known := w.keys[id]
	switch rapid.IntRange(0, 9).Draw(t, "act") {
	case 0:
		w.issue()
	case 1, 2:
		if known {
			w.revoke(k)
		}
	case 3, 4:
		_ = p.Push(t.Context(), id) // may fail half way
	case 5:
		_ = p.Sweep(t.Context())
	case 6:
		w.flush()
	case 7:
		w.copy()
	case 8:
		if len(w.copies) > 0 {
			w.restore(rapid.IntRange(0, len(w.copies)-1).Draw(t, "copy"))
		}
	case 9: // an edge reads a live key, or writes what it read before
		if known && !k.Revoked {
			w.fills = append(w.fills, *k)
		} else if len(w.fills) > 0 {
			w.fill(w.fills[0].Digest)
			w.fills = w.fills[1:]
		}
	}
}

func TestAFailedPushHoldsTheVersionBack(t *testing.T) {
	t.Parallel()
	w := newWorld()
	p := publisher(w)
	w.issue()
	w.issue()
	if err := p.Push(t.Context(), "key_1"); err != nil {
		t.Fatal(err)
	}
	if w.redis.version != 0 || len(w.redis.records) != 1 {
		t.Errorf("version %d is published although the first key was not pushed", w.redis.version)
	}
	if err := p.Push(t.Context(), "key_0"); err != nil || w.redis.version != 2 {
		t.Errorf("version %d after both pushes, %v", w.redis.version, err)
	}
	if err := p.Push(t.Context(), "key_none"); !fault.Is(err, fault.NotFound) {
		t.Errorf("push of no key: %v", err)
	}
}

func TestPostgresBecomesAnOlderCopy(t *testing.T) {
	t.Parallel()
	w := newWorld()
	p := publisher(w)
	w.issue()
	if err := p.Push(t.Context(), "key_0"); err != nil {
		t.Fatal(err)
	}
	w.redis.version = 10 // what a PostgreSQL that is gone had published
	if err := p.Sweep(t.Context()); err != nil || w.redis.version != 1 {
		t.Errorf("version %d, %v", w.redis.version, err)
	}
}

// TestARestoredPostgresRevokesAgain: PostgreSQL becomes an older copy of itself, from before a revocation.
func TestARestoredPostgresRevokesAgain(t *testing.T) {
	t.Parallel()
	for _, failing := range []string{"", "unrevoked", "look", "revoke", "swap"} {
		w := newWorld()
		p := publisher(w)
		w.issue()
		w.issue()
		for id := range w.keys {
			if err := p.Push(t.Context(), id); err != nil {
				t.Fatal(err)
			}
		}
		before, version := *w.keys["key_0"], w.version
		w.revoke(w.keys["key_0"])
		if err := p.Push(t.Context(), "key_0"); err != nil {
			t.Fatal(err)
		}
		*w.keys["key_0"], w.version = before, version
		failed := false
		w.between = func(step string) bool {
			fail := step == failing && !failed
			failed = failed || fail
			return fail
		}
		for range 2 { // the second sweep repairs what the first could not
			_ = p.Sweep(t.Context())
		}
		if !w.keys["key_0"].Revoked || w.keys["key_1"].Revoked {
			t.Errorf("%q fails once: %+v", failing, w.keys)
		}
		if err := p.Push(t.Context(), "key_0"); err != nil || w.redis.version != w.version {
			t.Errorf("%q fails once: version %d of %d, %v", failing, w.redis.version, w.version, err)
		}
		w.check(t)
	}
}

func TestRunSweepsUntilItsContextEnds(t *testing.T) {
	t.Parallel()
	w := newWorld()
	ctx, cancel := context.WithCancel(t.Context())
	w.between = func(step string) bool {
		if step == "revoked" && w.redis.version == 0 {
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

func (revoking) RevokeKey(context.Context, ident.ConnectionID, ident.KeyID) error { return nil }

// A Redis that hangs does not fail a revocation, and delays its answer by less than half a second.
func TestAHangingRedisHardlyDelaysARevocation(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.issue()
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
