package ingest

import (
	"context"
	"errors"
	"time"

	"storefront.internal/control/internal/observation"
	"storefront.internal/control/internal/provider"
	"storefront.internal/control/internal/shop"
	"storefront.internal/shared/failpoint"
	"storefront.internal/shared/ident"
)

// FetchStart is what is known of an entity before a fetch.
type FetchStart struct {
	FetchSeq      int64     // orders fetches
	DirtySeq      int64     // the entity's mark
	LastFetchedAt time.Time // zero when it was never fetched
	Now           time.Time // PostgreSQL's clock
}

// Store is where entities are stored. Each method is one transaction.
type Store interface {
	// BeginFetch takes the sequence number of a fetch of an entity.
	BeginFetch(ctx context.Context, c ident.ConnectionID, key observation.Key) (FetchStart, error)
	// ApplyFetch applies a fetch of one entity. When the mark is still dirtySeq, it completes the job of the
	// context in the same transaction and returns completed.
	ApplyFetch(ctx context.Context, b *observation.Batch, key observation.Key,
		dirtySeq int64) (outcomes []observation.Outcome, completed bool, err error)
	// EnqueueShopCheck enqueues the check of a shop that its provider refused or suspended.
	EnqueueShopCheck(ctx context.Context, c ident.ConnectionID) error
}

// minFetchInterval is the shortest time between two fetches of one entity.
const minFetchInterval = time.Second

// Service fetches marked entities.
type Service struct {
	store   Store
	shops   *shop.Shops
	metrics *Metrics
	now     func() time.Time
}

// New returns a Service.
func New(store Store, shops *shop.Shops, metrics *Metrics, now func() time.Time) *Service {
	return &Service{store: store, shops: shops, metrics: metrics, now: now}
}

// Refresh fetches a marked entity. snooze is the time until the next fetch, 0 when none is needed. It returns
// shop.ErrClosed for a shop that cannot be called; another error may be retried.
func (s *Service) Refresh(ctx context.Context, c ident.ConnectionID,
	key observation.Key) (snooze time.Duration, err error) {
	opened, err := s.shops.Open(ctx, c)
	if err != nil {
		return 0, err
	}
	start, err := s.store.BeginFetch(ctx, c, key)
	if err != nil {
		return 0, err
	}
	if wait := minFetchInterval - start.Now.Sub(start.LastFetchedAt); wait > 0 {
		return min(wait, minFetchInterval), nil
	}
	failpoint.Hit(failpoint.FetchBegun)
	fetched, err := FetchOne(ctx, opened, key)
	if err != nil {
		return s.failed(ctx, c, err)
	}
	failpoint.Hit(failpoint.FetchAnswered)
	b := NewBatch(opened.Source, s.now(), []provider.Fetched{fetched}, start.FetchSeq)
	outcomes, completed, err := s.store.ApplyFetch(ctx, b, key, start.DirtySeq)
	if err != nil {
		return 0, err
	}
	failpoint.Hit(failpoint.FetchApplied)
	s.metrics.Applied(opened.Source.Provider, outcomes)
	if !completed {
		return minFetchInterval, nil
	}
	return 0, nil
}

// failed decides what follows a failed fetch. A shop that was refused or suspended is checked; the entity
// stays marked, and the bootstrap run that follows the shop's return reads it.
func (s *Service) failed(ctx context.Context, c ident.ConnectionID,
	err error) (snooze time.Duration, _ error) {
	s.metrics.failures.WithLabelValues(string(provider.ReasonOf(err))).Inc()
	if AccessDenied(err) {
		if err := s.store.EnqueueShopCheck(ctx, c); err != nil {
			return 0, err
		}
		return 0, shop.ErrClosed
	}
	if after, retryable := provider.RetryAfter(err); retryable && after > 0 {
		return after, nil
	}
	return 0, err
}

// AccessDenied reports whether the provider refused the credential or suspended the shop.
func AccessDenied(err error) bool {
	var refused *provider.CredentialRefused
	var paused *provider.ShopSuspended
	return errors.As(err, &refused) || errors.As(err, &paused)
}
