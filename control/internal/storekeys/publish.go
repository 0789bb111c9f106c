package storekeys

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"storefront.internal/shared/crashpoint"
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
	// RevokedAfter returns the digests of the keys that were revoked by changes after the version, within the time.
	RevokedAfter(ctx context.Context, version int64, within time.Duration) ([][32]byte, error)
}

// Cache is what the edges read: Redis. An edge trusts its records only while its version is not behind PostgreSQL's.
type Cache interface {
	// PutGrant never replaces what is there, so a late push does not undo a revocation.
	PutGrant(ctx context.Context, digest [32]byte, g storekey.Grant) error
	// PutTombstones replaces the records of revoked keys.
	PutTombstones(ctx context.Context, digests [][32]byte) error
	// Version returns NoVersion when Redis has none.
	Version(ctx context.Context) (int64, error)
	// SwapVersion publishes a version and hints at it, if the version that is there is still the old one. With it, in one
	// step, it replaces the records of the revoked keys: a Redis that becomes a copy of itself has both or neither.
	SwapVersion(ctx context.Context, old, version int64, revoked [][32]byte) (swapped bool, err error)
}

// NoVersion is the version of a Redis that has none: less than every version.
const NoVersion = -1

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
		crashpoint.Hit(crashpoint.KeyWritten)
		if err := p.state.MarkPushed(ctx, k, s.Changed); err != nil {
			return err
		}
	}
	return p.publish(ctx)
}

func (p *Publisher) write(ctx context.Context, s KeyState) error {
	if s.Revoked {
		return p.cache.PutTombstones(ctx, [][32]byte{s.Digest})
	}
	return p.cache.PutGrant(ctx, s.Digest, s.Grant)
}

// grantLife is how long a record of a live key may lie in Redis: its life, and the longest a fill can take.
const grantLife = 25 * time.Hour

// swaps bounds the attempts to publish beside other controls that publish, too.
const swaps = 5

// publish brings Redis's version to the complete one. A Redis that shows version v may be an older copy of itself, or a
// new one, so it is only believed to hold the revocations up to v: those after it are written again with the swap. A
// Redis that is exchanged before it shows another version, or takes both; one that is exchanged after it lost both.
func (p *Publisher) publish(ctx context.Context) error {
	for range swaps {
		have, err := p.cache.Version(ctx)
		if err != nil {
			return err
		}
		complete, err := p.state.CompleteVersion(ctx)
		if err != nil {
			return err
		}
		p.metrics.versions(complete, have)
		if have == complete {
			return nil
		}
		after := have
		if have > complete { // versions only rise: PostgreSQL is an older copy of itself, or another one
			p.logger.WarnContext(ctx, "Redis is ahead of PostgreSQL's key version; publishing again", "redis", have, "postgres", complete)
			after = NoVersion
		}
		revoked, err := p.state.RevokedAfter(ctx, after, grantLife)
		if err != nil {
			return err
		}
		swapped, err := p.cache.SwapVersion(ctx, have, complete, revoked)
		if err != nil || swapped {
			return err
		}
	}
	return errors.New("the key version in Redis changes all the time")
}

// recent is how far back a sweep repeats tombstones although Redis looks complete: a fail-over of one shard may have
// lost the last second's writes while the version, on another shard, survived.
const recent = time.Minute

// Sweep mends a Redis that has forgotten.
func (p *Publisher) Sweep(ctx context.Context) error {
	if err := p.publish(ctx); err != nil {
		return err
	}
	digests, err := p.state.RevokedAfter(ctx, NoVersion, recent)
	if err != nil {
		return err
	}
	return p.cache.PutTombstones(ctx, digests)
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
