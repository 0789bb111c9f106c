package storekeys

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"storefront.internal/shared/failpoint"
	"storefront.internal/shared/ident"
	"storefront.internal/shared/service"
	"storefront.internal/shared/storekey"
)

// KeyState is the state of a key, and whether Redis is known to have it.
type KeyState struct {
	Digest  [32]byte
	Grant   storekey.Grant
	Revoked bool
	Changed int64 // key version of the last change
	Pushed  int64 // newest change that Redis is known to have
}

// State reads keys and stores which changes Redis has.
type State interface {
	// KeyState returns not_found for a key that does not exist.
	KeyState(ctx context.Context, k ident.KeyID) (KeyState, error)
	// MarkPushed stores that Redis has the key's change of this version.
	MarkPushed(ctx context.Context, k ident.KeyID, changed int64) error
	// CompleteVersion returns the greatest key version up to which Redis has every change.
	CompleteVersion(ctx context.Context) (int64, error)
	// RevokedAfter returns the digests of keys that were revoked by changes after the version, within the
	// time.
	RevokedAfter(ctx context.Context, version int64, within time.Duration) ([][32]byte, error)
	// UnrevokedKeys returns the keys of all connections that are not revoked.
	UnrevokedKeys(ctx context.Context) ([]UnrevokedKey, error)
	// RevokeKey revokes a key; a revoked key is left as it is.
	RevokeKey(ctx context.Context, c ident.ConnectionID, k ident.KeyID) error
}

// UnrevokedKey is a key that is not revoked.
type UnrevokedKey struct {
	ConnectionID ident.ConnectionID
	ID           ident.KeyID
	Digest       [32]byte
}

// Cache is Redis, which the edges read. An edge trusts its records only while its version is not behind
// PostgreSQL's.
type Cache interface {
	// PutGrant never replaces a record, so a late push does not undo a revocation.
	PutGrant(ctx context.Context, digest [32]byte, g storekey.Grant) error
	// PutTombstones replaces the records of revoked keys.
	PutTombstones(ctx context.Context, digests [][32]byte) error
	// Tombstones reports which of the keys are revoked by their record.
	Tombstones(ctx context.Context, digests [][32]byte) ([]bool, error)
	// Version returns NoVersion when Redis has none.
	Version(ctx context.Context) (int64, error)
	// SwapVersion publishes and announces a version if the stored version is still the old one. In the same
	// step it replaces the records of the revoked keys, so a Redis that fails over has both or neither.
	SwapVersion(ctx context.Context, old, version int64, revoked [][32]byte) (swapped bool, err error)
}

// NoVersion is the version of a Redis without one; it is less than every version.
const NoVersion = -1

// Publisher writes keys to Redis. The published version never includes a change that Redis lacks: a failed
// push holds the version back, and edges ask PostgreSQL meanwhile.
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

// Push writes the present state of a key and then raises the version. It may be repeated at any time.
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
		failpoint.Hit(failpoint.KeyWritten)
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

// maxGrantAge is the greatest age of a live key's record in Redis: its lifetime and the longest fill.
const maxGrantAge = 25 * time.Hour

// maxSwapAttempts bounds the attempts to publish while other processes publish too.
const maxSwapAttempts = 5

// publish raises Redis's version to the complete one. A Redis with version v may be an older copy of itself
// after a failover, or new, so it is trusted only for revocations up to v: later ones are written again with
// the swap. A failover before the swap shows another version or takes both, one after the swap loses both.
func (p *Publisher) publish(ctx context.Context) error {
	for range maxSwapAttempts {
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
		if have > complete { // versions only rise, so PostgreSQL was restored or replaced
			if err := p.revokeAgain(ctx, have, complete); err != nil {
				return err
			}
			after = NoVersion
		}
		revoked, err := p.state.RevokedAfter(ctx, after, maxGrantAge)
		if err != nil {
			return err
		}
		swapped, err := p.cache.SwapVersion(ctx, have, complete, revoked)
		if err != nil || swapped {
			return err
		}
	}
	return errors.New("the key version in Redis changed during every attempt")
}

// revokeAgain revokes the keys whose revocation PostgreSQL has lost and Redis remembers. It comes before
// Redis's version goes back, so that it is repeated until it succeeds.
func (p *Publisher) revokeAgain(ctx context.Context, have, complete int64) error {
	keys, err := p.state.UnrevokedKeys(ctx)
	if err != nil {
		return err
	}
	digests := make([][32]byte, len(keys))
	for i, k := range keys {
		digests[i] = k.Digest
	}
	revoked, err := p.cache.Tombstones(ctx, digests)
	if err != nil {
		return err
	}
	again := 0
	for i, k := range keys {
		if !revoked[i] {
			continue
		}
		if err := p.state.RevokeKey(ctx, k.ConnectionID, k.ID); err != nil {
			return err
		}
		again++
		p.logger.WarnContext(ctx, "a key is revoked again",
			"connection_id", k.ConnectionID, "api_key_id", k.ID)
	}
	p.metrics.wentBack(again)
	p.logger.ErrorContext(ctx, "PostgreSQL has an earlier key version than Redis: it was restored or failed "+
		"over; revocations that Redis does not remember must be repeated by hand",
		"redis", have, "postgres", complete, "revoked_again", again)
	return nil
}

// recentRevocations is how far back a sweep repeats tombstones although the version is complete: a failover
// of one shard may have lost the last second of writes while the version, on another shard, survived.
const recentRevocations = time.Minute

// Sweep repairs a Redis that lost writes.
func (p *Publisher) Sweep(ctx context.Context) error {
	if err := p.publish(ctx); err != nil {
		return err
	}
	digests, err := p.state.RevokedAfter(ctx, NoVersion, recentRevocations)
	if err != nil {
		return err
	}
	return p.cache.PutTombstones(ctx, digests)
}

// SweepEvery is the time between two sweeps.
const SweepEvery = 2 * time.Second

// Run sweeps until the context ends. Failures are logged once until a sweep succeeds again.
func (p *Publisher) Run(ctx context.Context) error {
	failing := false
	service.Every(ctx, SweepEvery, func(ctx context.Context) {
		err := p.sweepOnce(ctx)
		if err != nil && !failing && ctx.Err() == nil {
			p.logger.WarnContext(ctx, "the key sweep fails; the edges read keys from PostgreSQL",
				"error", err.Error())
		}
		failing = err != nil
	})
	return nil
}

func (p *Publisher) sweepOnce(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if err := p.Sweep(ctx); err != nil {
		return fmt.Errorf("sweep keys: %w", err)
	}
	return nil
}
