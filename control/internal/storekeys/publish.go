package storekeys

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"storefront.internal/shared/ident"
	"storefront.internal/shared/storekey"
)

// KeyState is what the edges must learn of a key, and whether Redis is known to hold it.
type KeyState struct {
	Digest  [32]byte
	Grant   storekey.Grant
	Revoked bool
	Changed int64 // key version of the last change
	Pushed  int64 // newest change that Redis is known to hold
}

// State reads and marks what was pushed.
type State interface {
	// KeyState returns not_found for a key that is not there.
	KeyState(ctx context.Context, k ident.KeyID) (KeyState, error)
	// MarkPushed records that Redis holds the key's change of this version.
	MarkPushed(ctx context.Context, k ident.KeyID, changed int64) error
	// CompleteVersion returns the greatest key version such that Redis holds every change up to it.
	CompleteVersion(ctx context.Context) (int64, error)
	// RevokedWithin returns the digests of the keys that were revoked within the time.
	RevokedWithin(ctx context.Context, within time.Duration) ([][32]byte, error)
}

// Cache is what the edges read: Redis. An edge trusts its records only while its version is not behind PostgreSQL's.
type Cache interface {
	// PutGrant never replaces what is there, so a late push does not undo a revocation.
	PutGrant(ctx context.Context, digest [32]byte, g storekey.Grant) error
	// PutTombstones replaces the records of revoked keys.
	PutTombstones(ctx context.Context, digests [][32]byte) error
	// RaiseVersion publishes a version unless a greater one is there, and hints at it.
	RaiseVersion(ctx context.Context, version int64) error
	// Version returns -1 when Redis has none.
	Version(ctx context.Context) (int64, error)
}

// Publisher tells Redis of keys. The version that it publishes never runs ahead of a change that Redis has not got:
// a failed push holds the version back, and so the edges ask PostgreSQL meanwhile.
type Publisher struct {
	state   State
	cache   Cache
	metrics *Metrics
	logger  *slog.Logger
}

// NewPublisher returns a Publisher.
func NewPublisher(state State, cache Cache, metrics *Metrics, logger *slog.Logger) *Publisher {
	return &Publisher{state: state, cache: cache, metrics: metrics, logger: logger}
}

// Push writes what is true of a key now and then raises the version. It may be repeated at any time.
func (p *Publisher) Push(ctx context.Context, k ident.KeyID) (err error) {
	defer func() { p.metrics.pushed(err) }()
	s, err := p.state.KeyState(ctx, k)
	if err != nil {
		return err
	}
	if s.Pushed < s.Changed {
		if err := p.write(ctx, s); err != nil {
			return err
		}
		if err := p.state.MarkPushed(ctx, k, s.Changed); err != nil {
			return err
		}
	}
	return p.raise(ctx)
}

func (p *Publisher) write(ctx context.Context, s KeyState) error {
	if s.Revoked {
		return p.cache.PutTombstones(ctx, [][32]byte{s.Digest})
	}
	return p.cache.PutGrant(ctx, s.Digest, s.Grant)
}

func (p *Publisher) raise(ctx context.Context) error {
	version, err := p.state.CompleteVersion(ctx)
	if err != nil {
		return err
	}
	return p.cache.RaiseVersion(ctx, version)
}

// grantLife is how long a record of a live key may lie in Redis (its life, and the longest a fill can take).
const grantLife = 25 * time.Hour

// recent is how far back a sweep repeats tombstones although Redis looks complete: a fail-over of one shard may have
// lost the last second's writes while the version, on another shard, survived.
const recent = time.Minute

// Sweep mends a Redis that has forgotten: when its version is behind, it may hold live records of keys that were
// revoked since, so those get their tombstones again before the version is raised.
func (p *Publisher) Sweep(ctx context.Context) error {
	have, err := p.cache.Version(ctx)
	if err != nil {
		return err
	}
	want, err := p.state.CompleteVersion(ctx)
	if err != nil {
		return err
	}
	p.metrics.versions(want, have)
	within := recent
	if have < want {
		within = grantLife
		p.logger.InfoContext(ctx, "Redis is behind on key versions; publishing again", "have", have, "want", want)
	}
	digests, err := p.state.RevokedWithin(ctx, within)
	if err != nil {
		return err
	}
	if err := p.cache.PutTombstones(ctx, digests); err != nil {
		return err
	}
	return p.cache.RaiseVersion(ctx, want)
}

// SweepEvery is the time between two sweeps.
const SweepEvery = 2 * time.Second

// Run sweeps until the context ends. A failed sweep is logged once until one succeeds again.
func (p *Publisher) Run(ctx context.Context) error {
	tick := time.NewTicker(SweepEvery)
	defer tick.Stop()
	failing := false
	for {
		err := p.sweepOnce(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil && !failing {
			p.logger.WarnContext(ctx, "key sweep fails; the edges ask PostgreSQL", "error", err.Error())
		}
		failing = err != nil
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

func (p *Publisher) sweepOnce(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if err := p.Sweep(ctx); err != nil {
		return fmt.Errorf("sweep keys: %w", err)
	}
	return nil
}
