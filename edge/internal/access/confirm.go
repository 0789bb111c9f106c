package access

import (
	"sync"
	"time"
)

// confirmation is what the polls found out: the version that each store last told, and when it was asked. Its zero
// value has confirmed nothing. Pure but for its lock.
//
// Any change of either version is a move, downwards too: after a restore from a backup PostgreSQL is right, whatever
// Redis or this process remember.
type confirmation struct {
	mu    sync.RWMutex
	moves uint64 // the generation
	store told
	cache told
}

// told is the last answer of a store.
type told struct {
	version int64
	known   bool
	at      time.Time
}

// storeTold notes PostgreSQL's version, asked for at the given time, and reports whether it moved.
func (c *confirmation) storeTold(version int64, at time.Time) (moved bool) {
	return c.note(&c.store, told{version: version, known: true, at: at})
}

// cacheTold notes the cache's version, if it has one, and reports whether it moved.
func (c *confirmation) cacheTold(version int64, known bool, at time.Time) (moved bool) {
	return c.note(&c.cache, told{version: version, known: known, at: at})
}

func (c *confirmation) note(last *told, now told) (moved bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	moved = now.version != last.version || now.known != last.known
	*last = now
	if moved {
		c.moves++
	}
	return moved
}

func (c *confirmation) generation() uint64 {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.moves
}

// cacheTrusted reports whether the cache's records are to be believed: it told lately a version that is not behind
// PostgreSQL's last one.
func (c *confirmation) cacheTrusted(now time.Time) bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.cacheAbreast() && now.Sub(c.cache.at) <= confirmedLife
}

func (c *confirmation) cacheAbreast() bool {
	return c.cache.known && c.cache.version >= c.store.version
}

// confirmed reports whether a store told the version lately enough for what is remembered to be good.
func (c *confirmation) confirmed(now time.Time) bool {
	age, ok := c.age(now)
	return ok && age <= confirmedLife
}

// age is the time since the last confirmation; ok is false before the first.
func (c *confirmation) age(now time.Time) (d time.Duration, ok bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	var last time.Time
	if c.store.known {
		last, ok = c.store.at, true
	}
	if c.cacheAbreast() && c.cache.at.After(last) {
		last, ok = c.cache.at, true
	}
	return now.Sub(last), ok
}
