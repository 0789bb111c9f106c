package access

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/singleflight"

	"storefront.internal/shared/backoff"
	"storefront.internal/shared/breaker"
	"storefront.internal/shared/fault"
	"storefront.internal/shared/storekey"
)

// Digest is what a key is looked up by.
type Digest = [32]byte

// Store holds the keys: PostgreSQL. Both methods may block until the context ends.
type Store interface {
	// Grant returns what the key opens; found is false for a key that is unknown or revoked.
	Grant(ctx context.Context, d Digest) (g storekey.Grant, found bool, err error)
	// Changes returns the changes of keys since the given one, or only the newest if known is false.
	Changes(ctx context.Context, since storekey.Change, known bool) (Log, error)
}

// CacheState is what the cache holds of a key.
type CacheState uint8

// The states of a key in the cache.
const (
	CacheEmpty CacheState = iota
	CacheGranted
	CacheRevoked
)

// Cache is the copy that all edges share: Redis. Both reads may block until the context ends.
type Cache interface {
	Grant(ctx context.Context, d Digest) (storekey.Grant, CacheState, error)
	// Fill stores a grant unless the cache holds a grant or a revocation of the key.
	Fill(ctx context.Context, d Digest, g storekey.Grant) error
	// Changes is Store's for the changes that are published; published is false when no version is.
	Changes(ctx context.Context, since storekey.Change, known bool) (l Log, published bool, err error)
}

// The times of the rules in the package comment.
const (
	grantTTL       = 10 * time.Second
	negativeTTL    = time.Second
	maxUnconfirmed = 15 * time.Second
	pollInterval   = time.Second
	hintPause      = 100 * time.Millisecond // between two polls for hints
	pollTimeout    = 2 * time.Second
	loadTimeout    = 3 * time.Second
	storeTimeout   = time.Second            // after it PostgreSQL counts as hanging
	storePause     = time.Second            // in which a PostgreSQL that hangs is not asked
	staleWait      = 300 * time.Millisecond // of a caller for whom memory holds a grant past its time
	cacheTimeout   = 250 * time.Millisecond
	retryAfter     = 2 * time.Second
)

// The bounds of the memory for known and for unknown keys.
const (
	maxGrants   = 100_000
	maxUnknowns = 10_000
)

// Config is what a KeyResolver needs.
type Config struct {
	Store   Store
	Cache   Cache
	Now     func() time.Time
	Logger  *slog.Logger
	Metrics *Metrics
}

// KeyResolver resolves storefront keys. It is safe for concurrent use. Run confirms what it caches.
type KeyResolver struct {
	cfg           Config
	grants        *lru.Cache[Digest, entry]
	negativeCache *lru.Cache[Digest, entry]
	freshness     *freshness
	breaker       *breaker.Breaker // of the store; opens after a timeout
	loads         singleflight.Group
	confirmations chan struct{} // tokens of Known's look-ups
	hinted        chan struct{}
}

// entry is what memory holds of a key, and the generation in which it was read.
type entry struct {
	grant      storekey.Grant // none in the negative cache
	generation uint64
	until      time.Time
	refreshAt  *atomic.Int64 // nanoseconds since 1970; none in the negative cache
}

// New returns a resolver with an empty memory.
func New(c Config) *KeyResolver {
	grants, _ := lru.New[Digest, entry](maxGrants) // fails only for a size of 0
	negative, _ := lru.New[Digest, entry](maxUnknowns)
	r := &KeyResolver{cfg: c, grants: grants, negativeCache: negative,
		breaker: breaker.New(breaker.Config{Open: backoff.Policy{Min: storePause, Max: storePause},
			ProbeTimeout: 2 * storeTimeout, Now: c.Now}),
		confirmations: make(chan struct{}, maxConfirmations),
		hinted:        make(chan struct{}, 1)}
	r.freshness = newFreshness(r.forget)
	return r
}

// forget removes changed keys from memory, or all.
func (r *KeyResolver) forget(changes []storekey.Change, all bool) {
	if all {
		r.cfg.Metrics.emptied.Inc()
		r.grants.Purge()
		r.negativeCache.Purge()
	}
	for _, c := range changes {
		r.cfg.Metrics.changes.Inc()
		r.grants.Remove(c.Digest)
		r.negativeCache.Remove(c.Digest)
	}
}

// errUnauthorized is the same for every key that opens nothing, whatever the reason.
func errUnauthorized() error {
	return fault.New(fault.Unauthorized, "The storefront key is missing or not valid.")
}

func errUnavailable(cause error) error {
	return &fault.Error{Code: fault.ServiceUnavailable,
		Detail:     "Storefront keys cannot be verified right now.",
		RetryAfter: retryAfter, Err: cause}
}

// Resolve returns what the secret opens. The errors are the faults unauthorized and service_unavailable. The
// secret is not kept.
func (r *KeyResolver) Resolve(ctx context.Context, secret []byte) (storekey.Grant, error) {
	if !storekey.WellFormed(secret) {
		r.cfg.Metrics.malformed.Inc()
		return storekey.Grant{}, errUnauthorized()
	}
	d := storekey.Digest(secret)
	if grant, ok := r.cached(d); ok {
		return grant, nil
	}
	if r.refused(d) {
		return storekey.Grant{}, errUnauthorized()
	}
	return r.load(ctx, d)
}

// refused reports whether memory holds that the key opens nothing.
func (r *KeyResolver) refused(d Digest) bool {
	now := r.cfg.Now()
	e, ok := r.negativeCache.Get(d)
	if generation, _ := r.freshness.state(now); !ok || e.generation != generation || !now.Before(e.until) {
		return false
	}
	r.cfg.Metrics.memory.Inc()
	return true
}

func (r *KeyResolver) cached(d Digest) (storekey.Grant, bool) {
	now := r.cfg.Now()
	e, ok := r.grants.Get(d)
	generation, confirmed := r.freshness.state(now)
	if !ok || e.generation != generation || !now.Before(e.until) || !confirmed {
		return storekey.Grant{}, false
	}
	r.cfg.Metrics.memory.Inc()
	r.refresh(d, e, now)
	return e.grant, true
}

// load looks the key up once for all concurrent callers. The look-up has its own deadline, so that one caller
// that gives up does not fail the others.
func (r *KeyResolver) load(ctx context.Context, d Digest) (storekey.Grant, error) {
	began := r.freshness.stamp(d)
	call := r.start(ctx, d, began)
	var enough <-chan time.Time
	if _, ok := r.stale(d); ok {
		t := time.NewTimer(staleWait)
		defer t.Stop()
		enough = t.C
	}
	select {
	case result := <-call:
		if result.Err != nil {
			return r.serveStale(d, result.Err)
		}
		return result.Val.(storekey.Grant), nil
	case <-ctx.Done():
		return r.serveStale(d, ctx.Err())
	case <-enough:
		return r.serveStale(d, context.DeadlineExceeded)
	}
}

// start begins the look-up of a key unless one runs that began after the key's last change.
func (r *KeyResolver) start(ctx context.Context, d Digest, began stamp) <-chan singleflight.Result {
	name := fmt.Sprintf("%x/%d/%d", d, began.generation, began.changed)
	return r.loads.DoChan(name, func() (v any, err error) {
		defer func() {
			if p := recover(); p != nil { // singleflight would end the process
				r.cfg.Metrics.panics.Inc()
				err = fmt.Errorf("access: panic in a look-up: %T", p)
			}
		}()
		loadCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), loadTimeout)
		defer cancel()
		return r.lookUp(loadCtx, d, began)
	})
}

// stale returns what memory holds past its ten seconds, while a store confirms that it has no later changes.
func (r *KeyResolver) stale(d Digest) (storekey.Grant, bool) {
	e, ok := r.grants.Get(d)
	generation, confirmed := r.freshness.state(r.cfg.Now())
	return e.grant, ok && e.generation == generation && confirmed
}

// serveStale answers when no store did, or not soon enough.
func (r *KeyResolver) serveStale(d Digest, cause error) (storekey.Grant, error) {
	if fault.Is(cause, fault.Unauthorized) {
		return storekey.Grant{}, cause
	}
	if grant, ok := r.stale(d); ok {
		r.cfg.Metrics.stale.Inc()
		return grant, nil
	}
	r.cfg.Metrics.unavailable.Inc()
	return storekey.Grant{}, errUnavailable(cause)
}

// lookUp asks Redis if it has the key's last change, and then PostgreSQL.
func (r *KeyResolver) lookUp(ctx context.Context, d Digest, began stamp) (storekey.Grant, error) {
	var cacheErr error
	if r.freshness.cacheTrusted(d, r.cfg.Now()) {
		var grant storekey.Grant
		var state CacheState
		if grant, state, cacheErr = r.fromCache(ctx, d); cacheErr == nil {
			switch state {
			case CacheGranted:
				r.remember(d, grant, began, r.cfg.Metrics.cache)
				return grant, nil
			case CacheRevoked:
				return storekey.Grant{}, r.rememberRefusal(d, began, r.cfg.Metrics.cache)
			case CacheEmpty:
			}
		}
	}
	var grant storekey.Grant
	var found bool
	err := r.breaker.Do(ctx, storeTimeout, func(ctx context.Context) (err error) {
		grant, found, err = r.cfg.Store.Grant(ctx, d)
		return err
	})
	if err != nil {
		return storekey.Grant{}, errors.Join(err, cacheErr)
	}
	if !found {
		return storekey.Grant{}, r.rememberRefusal(d, began, r.cfg.Metrics.store)
	}
	r.remember(d, grant, began, r.cfg.Metrics.store)
	r.fill(ctx, d, grant)
	return grant, nil
}

func (r *KeyResolver) fromCache(ctx context.Context, d Digest) (storekey.Grant, CacheState, error) {
	ctx, cancel := context.WithTimeout(ctx, cacheTimeout)
	defer cancel()
	return r.cfg.Cache.Grant(ctx, d)
}

// fill copies a grant into Redis for the other edges. When it fails, the next look-up asks PostgreSQL again.
func (r *KeyResolver) fill(ctx context.Context, d Digest, grant storekey.Grant) {
	ctx, cancel := context.WithTimeout(ctx, cacheTimeout)
	defer cancel()
	if err := r.cfg.Cache.Fill(ctx, d, grant); err != nil {
		r.cfg.Metrics.fillFailures.Inc()
	}
}

// remember stores the grant unless the key changed since its look-up began: it may be older than the change.
func (r *KeyResolver) remember(d Digest, grant storekey.Grant, began stamp, source prometheus.Counter) {
	source.Inc()
	now := r.cfg.Now()
	r.freshness.unlessChanged(d, began, func() {
		r.negativeCache.Remove(d)
		r.grants.Add(d, entry{grant: grant, generation: began.generation, until: now.Add(grantTTL),
			refreshAt: refreshTime(now)})
	})
}

func (r *KeyResolver) rememberRefusal(d Digest, began stamp, source prometheus.Counter) error {
	source.Inc()
	r.freshness.unlessChanged(d, began, func() {
		r.grants.Remove(d)
		r.negativeCache.Add(d, entry{generation: began.generation, until: r.cfg.Now().Add(negativeTTL)})
	})
	return errUnauthorized()
}
