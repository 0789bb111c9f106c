// Package claimstest owns what tests of the claim protocol need: FakeRedis, a second implementation of
// claims.Store, and Conformance, the suite that it and the real one pass. Only tests import it.
package claimstest

import (
	"context"
	"sync"
	"time"

	"storefront.internal/edge/internal/claims"
)

// FakeRedis is a Redis that several processes connect to. Its clock is time.Now, so a synctest bubble moves
// it.
type FakeRedis struct {
	mu       sync.Mutex
	claims   map[claims.Key]claim
	statuses map[string]claims.Status
	epoch    time.Time // zero: there is none
}

type claim struct {
	holder string
	since  time.Time
}

// NewFakeRedis returns a server that has lost nothing for a long time.
func NewFakeRedis() *FakeRedis {
	r := &FakeRedis{}
	r.FlushAll()
	r.epoch = time.Now().Add(-24 * time.Hour)
	return r
}

// FlushAll is FLUSHALL.
func (r *FakeRedis) FlushAll() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.claims, r.statuses, r.epoch = map[claims.Key]claim{}, map[string]claims.Status{}, time.Time{}
}

// Age makes a claim older. It reports whether there is one.
func (r *FakeRedis) Age(key claims.Key, by time.Duration) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	c, ok := r.claim(key)
	if ok {
		c.since = c.since.Add(-by)
		r.claims[key] = c
	}
	return ok
}

// AgeEpoch makes the epoch older.
func (r *FakeRedis) AgeEpoch(by time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.epoch = r.epoch.Add(-by)
}

func (r *FakeRedis) claim(key claims.Key) (claim, bool) {
	c, ok := r.claims[key]
	if ok && time.Since(c.since) >= claims.ClaimTTL {
		delete(r.claims, key)
		return claim{}, false
	}
	return c, ok
}

// Connect returns a conn of one process. before, when there is one, is called before every single command; it
// may delay the command, fail the call, or never return. Commands of other conns may run in between.
func (r *FakeRedis) Connect(before func(ctx context.Context) error) *Conn {
	if before == nil {
		before = func(context.Context) error { return nil }
	}
	return &Conn{redis: r, before: before}
}

// Conn implements claims.Store.
type Conn struct {
	redis  *FakeRedis
	before func(ctx context.Context) error
}

var _ claims.Store = (*Conn)(nil)

// each runs n commands one after the other.
func (c *Conn) each(ctx context.Context, n int, command func(i int)) error {
	for i := range n {
		if err := c.before(ctx); err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		c.redis.mu.Lock()
		command(i)
		c.redis.mu.Unlock()
	}
	return c.before(ctx) // the reply may be lost as well
}

// Claim implements claims.Store.
func (c *Conn) Claim(ctx context.Context, keys []claims.Key, holder string,
	previous []string) (claims.Memory, error) {
	var memory claims.Memory
	err := c.each(ctx, len(keys)+1, func(i int) {
		if i == len(keys) {
			memory = c.redis.memory()
			return
		}
		old, ok := c.redis.claim(keys[i])
		if previous[i] = old.holder; !ok {
			c.redis.claims[keys[i]] = claim{holder: holder, since: time.Now()}
		}
	})
	return memory, err
}

func (r *FakeRedis) memory() claims.Memory {
	switch {
	case r.epoch.IsZero():
		return claims.Unknown
	case time.Since(r.epoch) < claims.ClaimTTL:
		return claims.RecentlyLost
	default:
		return claims.Known
	}
}

// Inspect implements claims.Store.
func (c *Conn) Inspect(ctx context.Context, attempts []string, statuses []claims.Status, keys []claims.Key,
	ages []time.Duration) error {
	if err := c.each(ctx, len(attempts),
		func(i int) { statuses[i] = c.redis.statuses[attempts[i]] }); err != nil {
		return err
	}
	return c.each(ctx, len(keys), func(i int) {
		ages[i] = 0
		if old, ok := c.redis.claim(keys[i]); ok {
			ages[i] = time.Since(old.since)
		}
	})
}

// CompareAndSwap implements claims.Store.
func (c *Conn) CompareAndSwap(ctx context.Context, keys []claims.Key, from []string, holder string,
	swapped []bool) error {
	return c.each(ctx, len(keys), func(i int) {
		old, ok := c.redis.claim(keys[i])
		swapped[i] = ok && old.holder == from[i]
		if swapped[i] {
			c.redis.claims[keys[i]] = claim{holder: holder, since: time.Now()}
		}
	})
}

// Resolve implements claims.Store.
func (c *Conn) Resolve(ctx context.Context, attempts []string, status claims.Status,
	previous []claims.Status) error {
	return c.each(ctx, len(attempts), func(i int) {
		previous[i] = c.redis.statuses[attempts[i]]
		if previous[i] == claims.Open {
			c.redis.statuses[attempts[i]] = status
		}
	})
}

// StartEpoch implements claims.Store.
func (c *Conn) StartEpoch(ctx context.Context, _ []claims.Key, complete bool) error {
	return c.each(ctx, 1, func(int) {
		if c.redis.epoch.IsZero() {
			c.redis.epoch = time.Now()
			if complete {
				c.redis.epoch = c.redis.epoch.Add(-claims.ClaimTTL)
			}
		}
	})
}
