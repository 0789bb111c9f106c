package access

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"golang.org/x/sync/singleflight"

	"storefront.internal/shared/fault"
	"storefront.internal/shared/storekey"
)

// Digest is what a key is looked up by.
type Digest = [32]byte

// Store is the truth about keys: PostgreSQL. Both methods may block until the context ends.
type Store interface {
	// Grant answers what the key opens; found is false for a key that is unknown or revoked.
	Grant(ctx context.Context, d Digest) (g storekey.Grant, found bool, err error)
	// Version answers the version of the keys.
	Version(ctx context.Context) (int64, error)
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
	// Fill keeps a grant unless the cache holds something for the key, a revocation above all.
	Fill(ctx context.Context, d Digest, g storekey.Grant) error
	// Version answers the published version of the keys; known is false when none is there.
	Version(ctx context.Context) (v int64, known bool, err error)
}

// The times of the rules in the package comment.
const (
	memoryLife    = 10 * time.Second
	negativeLife  = time.Second
	confirmedLife = 15 * time.Second
	pollEvery     = time.Second
	pollTimeout   = 2 * time.Second
	loadTimeout   = 3 * time.Second
	cacheTimeout  = 250 * time.Millisecond
	retryAfter    = 2 * time.Second
)

// Config is what a Gate needs.
type Config struct {
	Store   Store
	Cache   Cache
	Now     func() time.Time
	Logger  *slog.Logger
	Metrics *Metrics
	// MaxKeys and MaxRefused bound the memory for known and for unknown keys. Defaults 100,000 and 10,000.
	MaxKeys, MaxRefused int
}

// Gate answers what keys open. It may be used by many goroutines; Run keeps it confirmed.
type Gate struct {
	store   Store
	cache   Cache
	now     func() time.Time
	log     *slog.Logger
	metrics *Metrics
	known   *memory[storekey.Grant]
	refused *memory[struct{}]
	state   confirmation
	loads   singleflight.Group
	nudged  chan struct{}
}

// New returns a gate that has confirmed nothing yet: until a first poll or load it remembers nothing for long.
func New(c Config) *Gate {
	if c.MaxKeys <= 0 {
		c.MaxKeys = 100_000
	}
	if c.MaxRefused <= 0 {
		c.MaxRefused = 10_000
	}
	return &Gate{
		store: c.Store, cache: c.Cache, now: c.Now, log: c.Logger, metrics: c.Metrics,
		known:   newMemory[storekey.Grant](c.MaxKeys),
		refused: newMemory[struct{}](c.MaxRefused),
		nudged:  make(chan struct{}, 1),
	}
}

// errRefused is the answer to every key that opens nothing, whatever the reason.
func errRefused() error {
	return fault.New(fault.Unauthorized, "The storefront key is missing or not valid.")
}

// errUnavailable says that nobody can tell what the key opens right now.
func errUnavailable(cause error) error {
	return &fault.Error{Code: fault.ServiceUnavailable, Detail: "Storefront keys cannot be verified right now.",
		RetryAfter: retryAfter, Err: cause}
}

// Resolve answers what the secret opens. The errors are the faults unauthorized and service_unavailable. The secret is
// not kept.
func (g *Gate) Resolve(ctx context.Context, secret []byte) (storekey.Grant, error) {
	if !storekey.WellFormed(secret) {
		g.metrics.lookups.WithLabelValues("malformed").Inc()
		return storekey.Grant{}, errRefused()
	}
	d := storekey.Digest(secret)
	now, generation := g.now(), g.state.generation()
	if e, ok := g.known.get(d); ok && e.generation == generation && now.Before(e.until) && g.state.confirmed(now) {
		g.metrics.lookups.WithLabelValues("memory").Inc()
		return e.value, nil
	}
	if e, ok := g.refused.get(d); ok && e.generation == generation && now.Before(e.until) {
		g.metrics.lookups.WithLabelValues("memory").Inc()
		return storekey.Grant{}, errRefused()
	}
	return g.load(ctx, d)
}

// Remembered answers what memory knows of a secret that opens something, as Resolve would, and looks nothing up.
func (g *Gate) Remembered(secret []byte) (storekey.Grant, bool) {
	if !storekey.WellFormed(secret) {
		return storekey.Grant{}, false
	}
	now := g.now()
	e, ok := g.known.get(storekey.Digest(secret))
	if !ok || e.generation != g.state.generation() || !now.Before(e.until) || !g.state.confirmed(now) {
		return storekey.Grant{}, false
	}
	g.metrics.lookups.WithLabelValues("memory").Inc()
	return e.value, true
}

// load looks the key up, once for all who ask at the same time. The look-up has a deadline of its own, so that one
// caller who gives up does not fail the others.
func (g *Gate) load(ctx context.Context, d Digest) (storekey.Grant, error) {
	generation := g.state.generation()
	flight := fmt.Sprintf("%x/%d", d, generation)
	answer := g.loads.DoChan(flight, func() (v any, err error) {
		defer func() {
			if p := recover(); p != nil { // singleflight would end the process
				g.metrics.panics.Inc()
				err = fmt.Errorf("access: panic in a look-up: %T", p)
			}
		}()
		loadCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), loadTimeout)
		defer cancel()
		return g.lookUp(loadCtx, d, generation)
	})
	select {
	case r := <-answer:
		if r.Err != nil {
			return g.fallBack(d, generation, r.Err)
		}
		return r.Val.(storekey.Grant), nil
	case <-ctx.Done():
		return g.fallBack(d, generation, ctx.Err())
	}
}

// fallBack serves what memory holds past its ten seconds when no store answered, while the version is confirmed.
func (g *Gate) fallBack(d Digest, generation uint64, cause error) (storekey.Grant, error) {
	if fault.Is(cause, fault.Unauthorized) {
		return storekey.Grant{}, cause
	}
	if e, ok := g.known.get(d); ok && e.generation == generation && g.state.confirmed(g.now()) {
		g.metrics.lookups.WithLabelValues("stale").Inc()
		return e.value, nil
	}
	g.metrics.lookups.WithLabelValues("unavailable").Inc()
	return storekey.Grant{}, errUnavailable(cause)
}

// lookUp asks Redis when it is to be believed, and PostgreSQL otherwise.
func (g *Gate) lookUp(ctx context.Context, d Digest, generation uint64) (storekey.Grant, error) {
	var cacheErr error
	if g.state.cacheTrusted(g.now()) {
		var grant storekey.Grant
		var state CacheState
		if grant, state, cacheErr = g.askCache(ctx, d); cacheErr == nil {
			switch state {
			case CacheGranted:
				g.remember(d, grant, generation, "cache")
				return grant, nil
			case CacheRevoked:
				return storekey.Grant{}, g.refuse(d, generation, "cache")
			case CacheEmpty:
			}
		}
	}
	grant, found, err := g.store.Grant(ctx, d)
	if err != nil {
		return storekey.Grant{}, errors.Join(err, cacheErr)
	}
	if !found {
		return storekey.Grant{}, g.refuse(d, generation, "store")
	}
	g.remember(d, grant, generation, "store")
	g.fill(ctx, d, grant)
	return grant, nil
}

func (g *Gate) askCache(ctx context.Context, d Digest) (storekey.Grant, CacheState, error) {
	ctx, cancel := context.WithTimeout(ctx, cacheTimeout)
	defer cancel()
	return g.cache.Grant(ctx, d)
}

// fill is a courtesy to the other edges; when it fails the next look-up asks PostgreSQL again.
func (g *Gate) fill(ctx context.Context, d Digest, grant storekey.Grant) {
	ctx, cancel := context.WithTimeout(ctx, cacheTimeout)
	defer cancel()
	if err := g.cache.Fill(ctx, d, grant); err != nil {
		g.metrics.fillFailures.Inc()
	}
}

// remember keeps the grant under the generation in which its look-up began: when the version moved meanwhile, what was
// read may be older than the move.
func (g *Gate) remember(d Digest, grant storekey.Grant, generation uint64, source string) {
	g.metrics.lookups.WithLabelValues(source).Inc()
	g.refused.drop(d)
	g.known.put(d, entry[storekey.Grant]{value: grant, generation: generation, until: g.now().Add(memoryLife)})
}

func (g *Gate) refuse(d Digest, generation uint64, source string) error {
	g.metrics.lookups.WithLabelValues(source).Inc()
	g.known.drop(d)
	g.refused.put(d, entry[struct{}]{generation: generation, until: g.now().Add(negativeLife)})
	return errRefused()
}
