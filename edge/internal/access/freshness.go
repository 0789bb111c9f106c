package access

import (
	"sync"
	"time"
)

// freshness holds the version that each store reported last, and when it was asked. The zero value has
// confirmed nothing.
//
// Any change of either version starts a new generation, a fall too: after a restore from a backup
// PostgreSQL's lower version is right, whatever Redis or this process remember.
type freshness struct {
	mu    sync.RWMutex
	gen   uint64
	store versionReading
	cache versionReading
}

// versionReading is the last answer of a store.
type versionReading struct {
	version int64
	known   bool
	at      time.Time
}

// recordStore notes PostgreSQL's version, asked for at the given time, and reports whether it changed.
func (f *freshness) recordStore(version int64, at time.Time) (changed bool) {
	return f.record(&f.store, versionReading{version: version, known: true, at: at})
}

// recordCache notes the cache's version, if it has one, and reports whether it changed.
func (f *freshness) recordCache(version int64, known bool, at time.Time) (changed bool) {
	return f.record(&f.cache, versionReading{version: version, known: known, at: at})
}

func (f *freshness) record(last *versionReading, now versionReading) (changed bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	changed = now.version != last.version || now.known != last.known
	*last = now
	if changed {
		f.gen++
	}
	return changed
}

func (f *freshness) generation() uint64 {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.gen
}

// cacheTrusted reports whether the cache's records may be used: its version was read lately and is not behind
// PostgreSQL's.
func (f *freshness) cacheTrusted(now time.Time) bool {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.cacheUpToDate() && now.Sub(f.cache.at) <= maxUnconfirmed
}

func (f *freshness) cacheUpToDate() bool {
	return f.cache.known && f.cache.version >= f.store.version
}

// confirmed reports whether a store confirmed the version lately enough for memory to be used.
func (f *freshness) confirmed(now time.Time) bool {
	age, ok := f.age(now)
	return ok && age <= maxUnconfirmed
}

// age is the time since the last confirmation; ok is false before the first.
func (f *freshness) age(now time.Time) (d time.Duration, ok bool) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	var last time.Time
	if f.store.known {
		last, ok = f.store.at, true
	}
	if f.cacheUpToDate() && f.cache.at.After(last) {
		last, ok = f.cache.at, true
	}
	return now.Sub(last), ok
}
