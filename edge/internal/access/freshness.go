package access

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"storefront.internal/shared/storekey"
)

// Log is what a store answers about the changes of keys.
type Log struct {
	Version int64 // of the keys; 0 when the store has none
	// Changes are those since the one that was asked for, which is the last of them if the store has it,
	// newest first. The newest is always there, if the store has any. There are at most MaxChanges.
	Changes []storekey.Change
}

// MaxChanges is how many changes a store answers at once.
const MaxChanges = 5000

// maxRecent is how many changes are remembered, so that a look-up that began before a change of its key is
// noticed, and a store that is behind is known to be so. It is far more than can happen in a second.
const maxRecent = 10_000

// freshness is how far memory has followed the changes of keys, and when a store confirmed that.
//
// A change that a store reports ends the memory of its key. Whenever the changes since the last known one
// cannot be told, everything is forgotten: PostgreSQL was restored, Redis became an older copy of itself, or
// a control of the previous release raised Redis's version without saying what changed.
type freshness struct {
	// forget removes the keys of these changes from memory, or all keys. It is called with mu held.
	forget func(changes []storekey.Change, all bool)

	mu         sync.RWMutex
	generation uint64 // rises whenever all keys are forgotten
	known      bool   // a store has answered
	version    int64  // memory has followed every change up to it
	newest     storekey.Change
	recent     []storekey.Change // oldest first; the changes after floor
	floor      int64
	changed    map[Digest]int64 // version of the last recent change of a key
	storeAt    time.Time        // when PostgreSQL was asked last, if it answered
	cache      cacheReading
}

// cacheReading is the last answer of the cache.
type cacheReading struct {
	known   bool // it has a version
	hasLog  bool
	version int64
	newest  storekey.Change
	at      time.Time
}

// complete reports whether the log has every change of the version. It has not when a control of the previous
// release raised the version.
func (r cacheReading) complete() bool { return r.hasLog && r.newest.Version == r.version }

// stamp is the state of a key when a look-up of it began.
type stamp struct {
	generation uint64
	version    int64 // of all keys
	changed    int64 // of the key, 0 if it did not change lately
}

func newFreshness(forget func(changes []storekey.Change, all bool)) *freshness {
	return &freshness{forget: forget, changed: map[Digest]int64{}}
}

// stamp returns the present state of a key.
func (f *freshness) stamp(d Digest) stamp {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return stamp{generation: f.generation, version: f.version, changed: f.changed[d]}
}

// unlessChanged calls store if the key has not changed since the stamp. No change is applied meanwhile.
func (f *freshness) unlessChanged(d Digest, s stamp, store func()) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	if s.generation == f.generation && s.changed == f.changed[d] && f.floor <= s.version {
		store()
	}
}

// asked is the newest change that is known, from which a store is asked on.
func (f *freshness) asked() (newest storekey.Change, known bool) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.newest, f.known
}

// recordStore notes PostgreSQL's answer to the question for the changes since asked. PostgreSQL is right: if
// its changes do not follow those that are known, it was restored.
func (f *freshness) recordStore(l Log, asked storekey.Change, at time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.storeAt = at
	if f.follow(l) {
		return
	}
	overtaken := !f.newest.Same(asked) && len(l.Changes) > 0 && f.remembers(l.Changes[0])
	if !overtaken { // the cache did not report later changes while PostgreSQL was asked
		f.restart(l)
	}
}

// recordCache notes the cache's answer.
func (f *freshness) recordCache(l Log, known bool, at time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	last := f.cache
	f.cache = cacheReading{known: known, hasLog: len(l.Changes) > 0, version: l.Version, at: at}
	if f.cache.hasLog {
		f.cache.newest = l.Changes[0]
	}
	switch {
	case last.known && (!known || l.Version < last.version):
		f.forgetAll() // it may have answered from an older copy
	case !known || f.follow(l) || f.known && l.Version <= f.version:
	case f.cache.complete():
		f.restart(l)
	case !last.known || last.version != l.Version:
		f.forgetAll()
	}
}

// follow applies the changes after the newest one that is known, if the store told them all.
func (f *freshness) follow(l Log) bool {
	n := slices.IndexFunc(l.Changes, f.newest.Same)
	if !f.known || n < 0 || l.Version-f.version != int64(n) {
		return false
	}
	if n == 0 {
		return true
	}
	newer := slices.Clone(l.Changes[:n])
	slices.Reverse(newer)
	f.recent = append(f.recent, newer...)
	for _, c := range newer {
		f.changed[c.Digest] = c.Version
	}
	for len(f.recent) > maxRecent {
		oldest := f.recent[0]
		f.recent, f.floor = f.recent[1:], max(f.floor, oldest.Version)
		if f.changed[oldest.Digest] == oldest.Version {
			delete(f.changed, oldest.Digest)
		}
	}
	f.version, f.newest = l.Version, l.Changes[0]
	f.forget(newer, false)
	return true
}

// restart forgets everything and goes on from a store's newest change.
func (f *freshness) restart(l Log) {
	f.known, f.version, f.floor, f.newest = true, l.Version, l.Version, storekey.Change{}
	f.recent = nil
	if len(l.Changes) > 0 {
		f.newest = l.Changes[0]
		f.recent = append(f.recent, f.newest)
	}
	clear(f.changed)
	f.forgetAll()
}

func (f *freshness) forgetAll() {
	f.generation++
	f.forget(nil, true)
}

// remembers reports whether a change is one of those that memory has followed.
func (f *freshness) remembers(c storekey.Change) bool {
	if f.newest.Same(c) {
		return true
	}
	i, found := slices.BinarySearchFunc(f.recent, c.Version,
		func(r storekey.Change, version int64) int { return cmp.Compare(r.Version, version) })
	return found && f.recent[i].Same(c)
}

// cacheCovers is the version up to which the cache's records include the changes that are known.
func (f *freshness) cacheCovers() (version int64, ok bool) {
	switch {
	case !f.cache.known:
		return 0, false
	case f.cache.complete():
		// A cache that is ahead has what a restored PostgreSQL lost.
		return f.cache.version, f.remembers(f.cache.newest) || f.cache.version > f.version
	default:
		return f.cache.version, f.cache.version >= f.version
	}
}

// cacheTrusted reports whether the cache's record of a key may be used: its version was read lately and
// includes the last known change of the key.
func (f *freshness) cacheTrusted(d Digest, now time.Time) bool {
	f.mu.RLock()
	defer f.mu.RUnlock()
	version, ok := f.cacheCovers()
	return ok && now.Sub(f.cache.at) <= maxUnconfirmed && version >= max(f.changed[d], f.floor)
}

// state returns the generation, and whether a store confirmed the changes lately enough for memory to be
// used.
func (f *freshness) state(now time.Time) (generation uint64, confirmed bool) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	age, ok := f.confirmedAgo(now)
	return f.generation, ok && age <= maxUnconfirmed
}

// age is the time since the last confirmation; ok is false before the first.
func (f *freshness) age(now time.Time) (d time.Duration, ok bool) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.confirmedAgo(now)
}

// confirmedAgo is the time since a store last said that it has no later changes. A cache that is behind says
// so too: the changes that it lacks are known.
func (f *freshness) confirmedAgo(now time.Time) (d time.Duration, ok bool) {
	last := f.storeAt
	if _, covers := f.cacheCovers(); covers && f.cache.at.After(last) {
		last = f.cache.at
	}
	return now.Sub(last), !last.IsZero()
}
