package access

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"storefront.internal/shared/storekey"
)

// refusedAfter is how long after a store that answers has a revocation the key is refused, at the worst: a
// poll that hangs since before the store answered, and the next one.
const refusedAfter = pollTimeout + pollInterval

// TestARevokedKeyIsNotAcceptedLate plays random histories of changes, pushes that come late, outages of both
// stores and a Redis that becomes an older copy of itself, with a key that is used all the time. Once a store
// that answers has had the revocation for refusedAfter, the key is refused for good.
func TestARevokedKeyIsNotAcceptedLate(t *testing.T) {
	t.Parallel()
	step := rapid.Custom(func(t *rapid.T) step {
		return step{rapid.IntRange(0, 11).Draw(t, "act"), rapid.IntRange(0, 3).Draw(t, "key"),
			time.Duration(rapid.IntRange(0, 14).Draw(t, "tenths")) * 100 * time.Millisecond}
	})
	rapid.Check(t, func(rt *rapid.T) {
		steps := rapid.SliceOfN(step, 1, 60).Draw(rt, "steps")
		if fault := playSteps(t, steps); fault != "" {
			rt.Fatal(fault)
		}
	})
}

type step struct {
	act, key int
	wait     time.Duration
}

// history is a run: the keys, and since when an answering store has had the revocation of each.
type history struct {
	*stores
	keys    [][]byte
	revoked map[int]bool
	told    map[int]time.Time
	final   map[int]bool
	copies  []redisCopy
}

type redisCopy struct {
	version int64
	log     []storekey.Change
	records map[Digest]CacheState
}

func playSteps(t *testing.T, steps []step) (fault string) {
	play(t, func(t *testing.T, r *KeyResolver, s *stores) {
		h := &history{stores: s, revoked: map[int]bool{}, told: map[int]time.Time{}, final: map[int]bool{}}
		for range 4 {
			h.keys = append(h.keys, s.issue())
		}
		h.copy()
		defer pass(2 * loadTimeout) // until look-ups that hang have ended
		for i, st := range steps {
			h.act(st)
			for range st.wait / (100 * time.Millisecond) {
				h.note()
				pass(100 * time.Millisecond)
				if fault = h.check(t, r); fault != "" {
					fault = fmt.Sprintf("step %d: %s", i, fault)
					return
				}
			}
		}
	})
	return fault
}

func (h *history) act(st step) {
	secret := h.keys[st.key]
	if (st.act == 1 || st.act == 2) && !h.live(secret) {
		return
	}
	switch st.act {
	case 0:
		h.issue()
	case 1, 2:
		h.revoke(secret, st.act == 1)
		h.revoked[st.key] = true
	case 3, 4:
		h.set(h.publish)
	case 5:
		h.set(func() { h.storeHangs = !h.storeHangs })
	case 6:
		h.set(func() { h.storeDown = !h.storeDown })
	case 7:
		h.set(func() { h.cacheDown = !h.cacheDown })
	case 8:
		h.copy()
	case 9:
		h.becomeCopy(h.copies[st.key%len(h.copies)])
	case 10:
		h.set(h.publishVersionOnly)
	case 11:
		h.becomeCopy(redisCopy{records: map[Digest]CacheState{}, version: -1})
	}
}

func (s *stores) live(secret []byte) (live bool) {
	s.set(func() { _, live = s.keys[storekey.Digest(secret)] })
	return live
}

func (h *history) copy() {
	h.set(func() {
		h.copies = append(h.copies, redisCopy{h.published, h.publishedLog, maps.Clone(h.cached)})
	})
}

func (h *history) becomeCopy(c redisCopy) {
	h.set(func() {
		h.published, h.publishedLog, h.cached = max(0, c.version), slices.Clone(c.log), maps.Clone(c.records)
		h.hasVersion = c.version >= 0
	})
}

// note records which revocations an answering store has now.
func (h *history) note() {
	h.set(func() {
		for k := range h.revoked {
			d := storekey.Digest(h.keys[k])
			inStore := !h.storeHangs && !h.storeDown
			inCache := !h.cacheDown && h.hasVersion && h.cached[d] == CacheRevoked &&
				h.published >= h.revokedBy(d)
			if !inStore && !inCache {
				delete(h.told, k)
			} else if _, already := h.told[k]; !already {
				h.told[k] = time.Now()
			}
		}
	})
}

func (s *stores) revokedBy(d Digest) (version int64) {
	for _, c := range s.changes {
		if c.Digest == d {
			version = c.Version
		}
	}
	return version
}

func (h *history) check(t *testing.T, r *KeyResolver) string {
	for k, secret := range h.keys {
		_, err := r.Resolve(t.Context(), secret)
		at, told := h.told[k]
		h.final[k] = h.final[k] || told && time.Since(at) >= refusedAfter
		if h.final[k] && err == nil {
			return fmt.Sprintf("key %d is accepted %s after an answering store has its revocation", k,
				time.Since(at))
		}
	}
	return ""
}
