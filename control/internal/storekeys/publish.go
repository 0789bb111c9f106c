package storekeys

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"golang.org/x/sync/semaphore"

	"storefront.internal/shared/failpoint"
	"storefront.internal/shared/ident"
	"storefront.internal/shared/service"
	"storefront.internal/shared/storekey"
)

// KeyChange is a change, with the present state of its key.
type KeyChange struct {
	storekey.Change
	Grant   storekey.Grant
	Revoked bool
}

// Changes are the changes in PostgreSQL that follow a given one.
type Changes struct {
	Version int64       // of the keys
	Known   bool        // PostgreSQL has the given change
	After   []KeyChange // oldest first
	More    bool        // there are more than were asked for
	// Unmarked: a control of the previous release made a change and has not marked it as pushed.
	Unmarked bool
}

// Newest describes the log in PostgreSQL.
type Newest struct {
	Version int64           // of the keys
	Change  storekey.Change // the newest
	Oldest  int64           // version of the oldest change that is kept
}

// State reads and changes keys in PostgreSQL.
type State interface {
	// ChangesAfter returns at most limit changes after the given one.
	ChangesAfter(ctx context.Context, c storekey.Change, limit int) (Changes, error)
	Newest(ctx context.Context) (Newest, error)
	// MarkPushed stores that Redis has every change up to the version.
	MarkPushed(ctx context.Context, version int64) error
	// DeleteChanges deletes all but the newest changes.
	DeleteChanges(ctx context.Context, keep int64) error
	// RevokedAfter returns the digests of keys that were revoked by changes after the version, within the
	// time.
	RevokedAfter(ctx context.Context, version int64, within time.Duration) ([][32]byte, error)
	// UnrevokedKeys returns the keys of all connections that are not revoked.
	UnrevokedKeys(ctx context.Context) ([]UnrevokedKey, error)
	// RevokeKey revokes a key; a revoked key is left as it is.
	RevokeKey(ctx context.Context, c ident.ConnectionID, k ident.KeyID) (storekey.Change, error)
}

// UnrevokedKey is a key that is not revoked.
type UnrevokedKey struct {
	ConnectionID ident.ConnectionID
	ID           ident.KeyID
	Digest       [32]byte
}

// Head is how far Redis is.
type Head struct {
	Version int64           // NoVersion when Redis has none
	HasLog  bool            // false for a Redis that is new, or was written by the previous release only
	Newest  storekey.Change // of the log
}

// NoVersion is the version of a Redis without one; it is less than every version.
const NoVersion = -1

// Cache is Redis, which the edges read.
type Cache interface {
	// PutTombstones replaces the records of revoked keys.
	PutTombstones(ctx context.Context, digests [][32]byte) error
	// Tombstones reports which of the keys are revoked by their record.
	Tombstones(ctx context.Context, digests [][32]byte) ([]bool, error)
	Head(ctx context.Context) (Head, error)
	// Append writes, in one step, the changes that follow one that Redis has, the records of their keys, and
	// the version. A grant never replaces a record. What Redis has already stays. It is false when Redis does
	// not have the given change.
	Append(ctx context.Context, since storekey.Change, version int64, changes []KeyChange) (bool, error)
	// Reset writes, in one step, the version, the records of revoked keys, and a log that begins with the
	// newest change, unless Redis has another head by now.
	Reset(ctx context.Context, have Head, version int64, newest storekey.Change,
		revoked [][32]byte) (bool, error)
}

// Publisher copies the changes of keys from PostgreSQL to Redis, in their order. The version in Redis never
// includes a change that Redis lacks.
type Publisher struct {
	state     State
	cache     Cache
	metrics   *Metrics
	logger    *slog.Logger
	turn      *semaphore.Weighted // one of this process publishes at a time
	published int64               // the version that it published last
	failed    unpublished
}

// NewPublisher returns a Publisher.
func NewPublisher(state State, cache Cache, metrics *Metrics, logger *slog.Logger) *Publisher {
	return &Publisher{state: state, cache: cache, metrics: metrics, logger: logger,
		turn: semaphore.NewWeighted(1), published: NoVersion}
}

// Push returns when Redis has the change of this version. Changes that were committed while another push ran
// are copied together by the next.
func (p *Publisher) Push(ctx context.Context, version int64) (err error) {
	defer func() { p.metrics.pushed(err) }()
	return p.publishFrom(ctx, version)
}

// PushRevocation is Push for a key that was revoked. It writes the tombstone before it asks PostgreSQL
// anything: if PostgreSQL hangs now, an edge that looks the key up again is refused all the same. The sweep
// repeats a revocation whose push failed.
func (p *Publisher) PushRevocation(ctx context.Context, r Revocation, c storekey.Change) (err error) {
	defer func() {
		p.metrics.pushed(err)
		if err != nil {
			p.failed.add(r)
		}
	}()
	if err := p.cache.PutTombstones(ctx, [][32]byte{c.Digest}); err != nil {
		return err
	}
	return p.publishFrom(ctx, c.Version)
}

// Publish copies every change that Redis lacks. It may be repeated at any time.
func (p *Publisher) Publish(ctx context.Context) error {
	const unpublished = 1<<63 - 1
	return p.publishFrom(ctx, unpublished)
}

// publishFrom publishes unless this process has published the version while the caller waited for its turn.
func (p *Publisher) publishFrom(ctx context.Context, version int64) error {
	if err := p.turn.Acquire(ctx, 1); err != nil {
		return fmt.Errorf("wait for another push: %w", err)
	}
	defer p.turn.Release(1)
	if version <= p.published {
		return nil
	}
	return p.publish(ctx)
}

const (
	// maxAttempts bounds the attempts to publish when Redis does not have the head any more that was read.
	maxAttempts = 5
	// maxChanges is how many changes are copied in one step.
	maxChanges = 500
)

func (p *Publisher) publish(ctx context.Context) error {
	for range maxAttempts {
		for done := true; done; {
			have, err := p.cache.Head(ctx)
			if err != nil {
				return err
			}
			var more bool
			if done, more, err = p.advance(ctx, have); err != nil || done && !more {
				return err
			}
		}
	}
	return errors.New("the key version in Redis changed during every attempt")
}

// advance copies changes to a Redis with this head. It is not done when Redis has another head by then.
func (p *Publisher) advance(ctx context.Context, have Head) (done, more bool, err error) {
	if !have.HasLog {
		done, err = p.reset(ctx, have, false)
		return done, false, err
	}
	changes, err := p.state.ChangesAfter(ctx, have.Newest, maxChanges)
	if err != nil {
		return false, false, err
	}
	p.metrics.versions(changes.Version, have.Version)
	if !changes.Known || have.Version > changes.Version || have.Version < have.Newest.Version {
		done, err = p.reset(ctx, have, !changes.Known)
		return done, false, err
	}
	if len(changes.After) == 0 && have.Version == changes.Version {
		p.settle(have.Version, changes.Version)
		return true, false, nil
	}
	done, err = p.copy(ctx, have, changes)
	return done, changes.More, err
}

func (p *Publisher) copy(ctx context.Context, have Head, changes Changes) (done bool, err error) {
	version := changes.Version
	if changes.More {
		version = changes.After[len(changes.After)-1].Version
	}
	if changes.Unmarked {
		// For one release: a control of the previous one takes a version in Redis that is ahead of its marks
		// for that of a PostgreSQL that is gone.
		if err := p.state.MarkPushed(ctx, version); err != nil {
			return false, err
		}
	}
	done, err = p.cache.Append(ctx, have.Newest, version, changes.After)
	if err != nil || !done {
		return false, err
	}
	failpoint.Hit(failpoint.KeyWritten)
	p.settle(version, changes.Version)
	return true, nil
}

// settle notes that Redis has the version.
func (p *Publisher) settle(redis, postgres int64) {
	p.published = redis
	p.metrics.versions(postgres, redis)
}

// maxGrantAge is the greatest age of a live key's record in Redis: its lifetime and the longest fill.
const maxGrantAge = 25 * time.Hour

// reset begins the log in Redis anew, because the changes since its newest one are not known. A Redis with
// version v may be an older copy of itself after a failover, or new, so it is trusted only for revocations up
// to v: later ones are written again with the version. A failover before that step shows another head or
// takes both, one after it loses both. unknown: PostgreSQL does not have the newest change of Redis.
func (p *Publisher) reset(ctx context.Context, have Head, unknown bool) (done bool, err error) {
	now, err := p.state.Newest(ctx)
	if err != nil {
		return false, err
	}
	after := have.Version
	// PostgreSQL was restored or replaced if it should have what Redis has.
	if have.Version > now.Version || unknown && have.Newest.Version >= now.Oldest {
		if err := p.revokeAgain(ctx, have.Version, now.Version); err != nil {
			return false, err
		}
		after = NoVersion
		if now, err = p.state.Newest(ctx); err != nil {
			return false, err
		}
	}
	revoked, err := p.state.RevokedAfter(ctx, after, maxGrantAge)
	if err != nil {
		return false, err
	}
	if err := p.state.MarkPushed(ctx, now.Version); err != nil { // as in copy
		return false, err
	}
	done, err = p.cache.Reset(ctx, have, now.Version, now.Change, revoked)
	if err == nil && done {
		p.settle(now.Version, now.Version)
	}
	return done, err
}

// revokeAgain revokes the keys whose revocation PostgreSQL has lost and Redis remembers. It comes before
// Redis's version goes back, so that it is repeated until it succeeds.
func (p *Publisher) revokeAgain(ctx context.Context, have, version int64) error {
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
		if _, err := p.state.RevokeKey(ctx, k.ConnectionID, k.ID); err != nil {
			return err
		}
		again++
		p.logger.WarnContext(ctx, "a key is revoked again",
			"connection_id", k.ConnectionID, "api_key_id", k.ID)
	}
	p.metrics.wentBack(again)
	p.logger.ErrorContext(ctx, "PostgreSQL lacks changes of keys that Redis has: it was restored or failed "+
		"over; revocations that Redis does not remember must be repeated by hand",
		"redis", have, "postgres", version, "revoked_again", again)
	return nil
}

// keepChanges is how many changes PostgreSQL keeps, about 10 MB. A Redis or an edge that lacks more begins
// anew.
const keepChanges = 100_000

// Sweep repeats pushes that failed, and repairs a Redis that lost writes.
func (p *Publisher) Sweep(ctx context.Context) error {
	failed := p.failed.list()
	if err := p.revoke(ctx, failed); err != nil {
		return err
	}
	if err := p.Publish(ctx); err != nil {
		return err
	}
	p.failed.forget(len(failed))
	return p.state.DeleteChanges(ctx, keepChanges)
}

// SweepEvery is the time between two sweeps.
const SweepEvery = 2 * time.Second

// Run sweeps until the context ends. Failures are logged once until a sweep succeeds again.
func (p *Publisher) Run(ctx context.Context) error {
	failing := false
	service.Every(ctx, SweepEvery, func(ctx context.Context) {
		err := p.sweepOnce(ctx)
		if err != nil && !failing && ctx.Err() == nil {
			p.logger.WarnContext(ctx, "the key sweep fails; the edges read changed keys from PostgreSQL",
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
