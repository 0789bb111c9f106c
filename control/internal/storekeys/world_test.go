package storekeys

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"storefront.internal/shared/fault"
	"storefront.internal/shared/ident"
	"storefront.internal/shared/storekey"
)

// world is the part of PostgreSQL and Redis that keys use. Before each of its steps something else may
// happen, so that a run is an interleaving of controls, edges and failures.
type world struct {
	keys    map[ident.KeyID]*keyState
	version int64
	changes []storekey.Change // oldest first
	tokens  int
	redis   cacheState
	copies  []cacheState // what Redis once was
	fills   []keyState   // edges that have read a live key and not written it yet
	between func(step string) (failed bool)
}

// keyState is a row. The previous release marks a key as pushed after its change; until then pushed is below
// changed.
type keyState struct {
	digest          [32]byte
	revoked         bool
	changed, pushed int64
}

type cacheState struct {
	version int64
	log     []storekey.Change
	records map[[32]byte]string
}

func newWorld() *world {
	w := &world{keys: map[ident.KeyID]*keyState{}, changes: []storekey.Change{{Token: "begin"}}}
	w.flush()
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

func (w *world) ChangesAfter(_ context.Context, after storekey.Change, limit int) (Changes, error) {
	if err := w.step("changes"); err != nil {
		return Changes{}, err
	}
	out := Changes{Version: w.version}
	i := slices.IndexFunc(w.changes, after.Same)
	if i < 0 {
		return out, nil
	}
	out.Known = true
	for _, c := range w.changes[i+1:] {
		if out.More = len(out.After) == limit; out.More {
			break
		}
		k := w.keyOf(c.Digest)
		out.After = append(out.After, KeyChange{Change: c, Revoked: k.revoked})
		out.Unmarked = out.Unmarked || k.pushed < k.changed
	}
	return out, nil
}

func (w *world) keyOf(digest [32]byte) *keyState {
	for _, k := range w.keys {
		if k.digest == digest {
			return k
		}
	}
	return &keyState{revoked: true}
}

func (w *world) Newest(context.Context) (Newest, error) {
	err := w.step("newest")
	return Newest{w.version, w.changes[len(w.changes)-1], w.changes[0].Version}, err
}

func (w *world) MarkPushed(_ context.Context, version int64) error {
	if err := w.step("mark"); err != nil {
		return err
	}
	for _, k := range w.keys {
		if k.changed <= version {
			k.pushed = k.changed
		}
	}
	return nil
}

func (w *world) DeleteChanges(_ context.Context, keep int64) error {
	w.changes = slices.DeleteFunc(w.changes,
		func(c storekey.Change) bool { return c.Version <= w.version-keep })
	return w.step("delete")
}

func (w *world) RevokedAfter(_ context.Context, version int64,
	_ time.Duration) (digests [][32]byte, err error) {
	if err := w.step("revoked"); err != nil {
		return nil, err
	}
	for _, k := range w.keys {
		if k.revoked && k.changed > version {
			digests = append(digests, k.digest)
		}
	}
	return digests, nil
}

func (w *world) UnrevokedKeys(context.Context) (keys []UnrevokedKey, err error) {
	if err := w.step("unrevoked"); err != nil {
		return nil, err
	}
	for id, k := range w.keys {
		if !k.revoked {
			keys = append(keys, UnrevokedKey{ID: id, Digest: k.digest})
		}
	}
	return keys, nil
}

func (w *world) RevokeKey(_ context.Context, _ ident.ConnectionID, id ident.KeyID) (storekey.Change, error) {
	if err := w.step("revoke"); err != nil {
		return storekey.Change{}, err
	}
	k, ok := w.keys[id]
	if !ok {
		return storekey.Change{}, fault.New(fault.NotFound, "")
	}
	w.revoke(k)
	return storekey.Change{Version: k.changed, Digest: k.digest}, nil
}

func (w *world) Tombstones(_ context.Context, digests [][32]byte) ([]bool, error) {
	revoked := make([]bool, len(digests))
	for i, d := range digests {
		revoked[i] = w.redis.records[d] == "revoked"
	}
	return revoked, w.step("look")
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

func (w *world) Head(context.Context) (Head, error) {
	h := Head{Version: w.redis.version}
	if n := len(w.redis.log); n > 0 {
		h.HasLog, h.Newest = true, w.redis.log[n-1]
	}
	return h, w.step("head")
}

func (w *world) Append(_ context.Context, since storekey.Change, version int64,
	changes []KeyChange) (bool, error) {
	if err := w.step("append"); err != nil {
		return false, err
	}
	if !slices.ContainsFunc(w.redis.log, since.Same) || w.redis.version < since.Version {
		return false, nil
	}
	for _, c := range changes {
		if c.Revoked {
			w.redis.records[c.Digest] = "revoked"
		} else {
			w.fill(c.Digest)
		}
		if !slices.ContainsFunc(w.redis.log, c.Same) {
			w.redis.log = append(w.redis.log, c.Change)
		}
	}
	slices.SortFunc(w.redis.log, func(a, b storekey.Change) int { return int(a.Version - b.Version) })
	w.redis.version = max(w.redis.version, version)
	return true, nil
}

func (w *world) Reset(ctx context.Context, have Head, version int64, newest storekey.Change,
	revoked [][32]byte) (bool, error) {
	if err := w.step("reset"); err != nil {
		return false, err
	}
	between := w.between
	w.between = func(string) bool { return false }
	now, _ := w.Head(ctx)
	w.between = between
	if now != have {
		return false, nil
	}
	for _, d := range revoked {
		w.redis.records[d] = "revoked"
	}
	w.redis.version, w.redis.log = version, []storekey.Change{newest}
	return true, nil
}

// check checks what the edges rely on.
func (w *world) check(t interface{ Fatalf(string, ...any) }) {
	w.checkLog(t)
	if w.redis.version < w.version {
		return // an edge asks PostgreSQL for the keys that changed since
	}
	for id, k := range w.keys {
		if k.revoked && w.redis.records[k.digest] == "grant" {
			t.Fatalf("key %s is revoked by version %d and Redis, trusted at %d, grants it", id,
				k.changed, w.redis.version)
		}
	}
}

// checkLog checks that Redis's log lacks none of the changes between its oldest and its newest.
func (w *world) checkLog(t interface{ Fatalf(string, ...any) }) {
	if len(w.redis.log) == 0 {
		return
	}
	oldest, newest := w.redis.log[0], w.redis.log[len(w.redis.log)-1]
	if newest.Version > w.redis.version && w.redis.version != NoVersion {
		t.Fatalf("the log has change %d, and the version is %d", newest.Version, w.redis.version)
	}
	for _, c := range w.changes {
		if c.Version > oldest.Version && c.Version <= newest.Version && !slices.Contains(w.redis.log, c) {
			t.Fatalf("the log from %d to %d lacks %+v", oldest.Version, newest.Version, c)
		}
	}
}

// issue adds a key as this release does, or as the previous one, which marks it later.
func (w *world) issue(marked bool) {
	id := ident.KeyID(fmt.Sprintf("key_%d", len(w.keys)))
	k := &keyState{digest: storekey.Digest([]byte(id))}
	w.keys[id] = k
	w.change(k, marked)
}

func (w *world) change(k *keyState, marked bool) {
	w.version++
	w.tokens++
	k.changed = w.version
	if marked {
		k.pushed = w.version
	}
	w.changes = append(w.changes, storekey.Change{Version: w.version, Token: fmt.Sprint("t", w.tokens),
		Digest: k.digest})
}

func (w *world) revoke(k *keyState) {
	if !k.revoked {
		k.revoked = true
		w.change(k, true)
	}
}

// previousPush is the push of the previous release: it writes the key, marks it, and publishes the version
// with the revocations that Redis may lack.
func (w *world) previousPush(t interface{ Fatalf(string, ...any) }, k *keyState) {
	if w.between("previous") {
		return
	}
	if k.revoked {
		w.redis.records[k.digest] = "revoked"
	} else {
		w.fill(k.digest)
	}
	if w.between("previous") {
		return
	}
	k.pushed = k.changed
	have := w.redis.version
	if w.between("previous") {
		return
	}
	complete := w.version
	for _, k := range w.keys {
		if k.pushed < k.changed {
			complete = min(complete, k.changed-1)
		}
	}
	if have > complete {
		t.Fatalf("a control of the previous release finds %d in Redis and believes that PostgreSQL, at %d, "+
			"was restored", have, complete)
	}
	if w.between("previous") || w.redis.version != have || have == complete {
		return
	}
	for _, k := range w.keys {
		if k.revoked && k.changed > have {
			w.redis.records[k.digest] = "revoked"
		}
	}
	w.redis.version = complete
}

func (w *world) flush() { w.redis = cacheState{version: NoVersion, records: map[[32]byte]string{}} }

func (w *world) copy() { w.copies = append(w.copies, w.redis.clone()) }

func (w *world) restore(i int) { w.redis = w.copies[i].clone() }

func (c cacheState) clone() cacheState {
	return cacheState{c.version, slices.Clone(c.log), maps.Clone(c.records)}
}

func publisher(w *world) *Publisher {
	return NewPublisher(w, w, NewMetrics(prometheus.NewRegistry()), slog.New(slog.DiscardHandler))
}
