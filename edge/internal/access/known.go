package access

import (
	"context"
	"sync/atomic"
	"time"

	"storefront.internal/shared/storekey"
)

// refreshAhead is how long before its end a grant is looked up anew when it is used, so that a key in use
// stays in memory; refreshPause is the least time between two such look-ups of a key.
const (
	refreshAhead = 4 * time.Second
	refreshPause = time.Second
)

// maxConfirmations bounds the look-ups in Redis for callers that may not use PostgreSQL.
const maxConfirmations = 64

// Known returns what a secret opens if memory or Redis know it. It asks PostgreSQL nothing and bounds what it
// asks Redis, so it may be called for a client that guesses keys.
func (r *KeyResolver) Known(ctx context.Context, secret []byte) (storekey.Grant, bool) {
	if !storekey.WellFormed(secret) {
		return storekey.Grant{}, false
	}
	d := storekey.Digest(secret)
	if grant, ok := r.cached(d); ok {
		return grant, true
	}
	if r.refused(d) {
		return storekey.Grant{}, false
	}
	switch grant, state := r.confirm(ctx, d); state {
	case CacheGranted:
		return grant, true
	case CacheRevoked:
		return storekey.Grant{}, false
	case CacheEmpty:
	}
	grant, ok := r.stale(d)
	if ok {
		r.cfg.Metrics.stale.Inc()
	}
	return grant, ok
}

// confirm asks Redis. It is empty when it did not answer or may not be used.
func (r *KeyResolver) confirm(ctx context.Context, d Digest) (storekey.Grant, CacheState) {
	began := r.freshness.stamp(d)
	if !r.freshness.cacheTrusted(d, r.cfg.Now()) {
		return storekey.Grant{}, CacheEmpty
	}
	select {
	case r.confirmations <- struct{}{}:
		defer func() { <-r.confirmations }()
	default:
		return storekey.Grant{}, CacheEmpty
	}
	grant, state, err := r.fromCache(ctx, d)
	if err != nil {
		return storekey.Grant{}, CacheEmpty
	}
	switch state {
	case CacheGranted:
		r.remember(d, grant, began, r.cfg.Metrics.cache)
	case CacheRevoked:
		_ = r.rememberRefusal(d, began, r.cfg.Metrics.cache)
	case CacheEmpty:
	}
	return grant, state
}

// refresh looks a key that is used up anew before memory forgets it, without a caller that waits. A key that
// was revoked is forgotten by that.
func (r *KeyResolver) refresh(d Digest, e entry, now time.Time) {
	due := e.refreshAt.Load()
	if now.UnixNano() >= due && e.refreshAt.CompareAndSwap(due, now.Add(refreshPause).UnixNano()) {
		r.start(context.Background(), d, r.freshness.stamp(d))
	}
}

// refreshTime is when a grant that was read now is refreshed.
func refreshTime(now time.Time) *atomic.Int64 {
	at := new(atomic.Int64)
	at.Store(now.Add(grantTTL - refreshAhead).UnixNano())
	return at
}
