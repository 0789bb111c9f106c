package ingest

import (
	"context"
	"errors"
	"time"

	"storefront.internal/control/internal/observation"
	"storefront.internal/control/internal/provider"
	"storefront.internal/control/internal/shop"
	"storefront.internal/shared/crashpoint"
	"storefront.internal/shared/ident"
)

// Begun is what is known before a fetch begins.
type Begun struct {
	Number int64     // of the fetch; it orders fetches
	Mark   int64     // the entity's dirty mark
	Last   time.Time // when the entity was fetched last; zero when it was not
	Now    time.Time // the store's clock
}

// Store is where entities live. Each method is one transaction.
type Store interface {
	// Begin numbers a fetch of an entity.
	Begin(ctx context.Context, c ident.ConnectionID, key observation.Key) (Begun, error)
	// Refresh applies a fetch of one entity. When the mark is still the one that the fetch began with, the job of the
	// context is completed in the same transaction and settled is true.
	Refresh(ctx context.Context, b *observation.Batch, key observation.Key, mark int64) (outcomes []observation.Outcome, settled bool, err error)
	// RequestCheck enqueues the check of a shop whose credential or subscription a provider refused.
	RequestCheck(ctx context.Context, c ident.ConnectionID) error
}

// Shops opens shops.
type Shops interface {
	Open(ctx context.Context, c ident.ConnectionID) (shop.Opened, error)
}

// pace is the least time between two fetches of one entity.
const pace = time.Second

// Service is the use case.
type Service struct {
	store   Store
	shops   Shops
	metrics *Metrics
	now     func() time.Time
}

// New returns a Service.
func New(store Store, shops Shops, metrics *Metrics, now func() time.Time) *Service {
	return &Service{store: store, shops: shops, metrics: metrics, now: now}
}

// Refresh fetches an entity that a notification marked. again is how soon there is something to do once more, 0 when
// there is not. An error is worth another attempt, or is of no shop that can be called (shop.ErrClosed).
func (s *Service) Refresh(ctx context.Context, c ident.ConnectionID, key observation.Key) (again time.Duration, err error) {
	opened, err := s.shops.Open(ctx, c)
	if err != nil {
		return 0, err
	}
	begun, err := s.store.Begin(ctx, c, key)
	if err != nil {
		return 0, err
	}
	if wait := pace - begun.Now.Sub(begun.Last); wait > 0 {
		return min(wait, pace), nil
	}
	crashpoint.Hit(crashpoint.FetchBegun)
	fetched, err := FetchOne(ctx, opened, key)
	if err != nil {
		return s.failed(ctx, c, err)
	}
	crashpoint.Hit(crashpoint.FetchAnswered)
	b := BatchOf(opened.Source, s.now(), []provider.Fetched{fetched}, begun.Number)
	outcomes, settled, err := s.store.Refresh(ctx, b, key, begun.Mark)
	if err != nil {
		return 0, err
	}
	crashpoint.Hit(crashpoint.FetchApplied)
	s.metrics.Applied(opened.Source.Provider, outcomes)
	if !settled {
		return pace, nil
	}
	return 0, nil
}

// failed says what to do about a provider that did not answer. A shop that is refused or paused is looked into, and what
// was to be fetched stays marked: the load that follows its return finds it.
func (s *Service) failed(ctx context.Context, c ident.ConnectionID, err error) (again time.Duration, _ error) {
	s.metrics.failures.WithLabelValues(string(provider.ReasonOf(err))).Inc()
	if Closing(err) {
		if err := s.store.RequestCheck(ctx, c); err != nil {
			return 0, err
		}
		return 0, shop.ErrClosed
	}
	if after, worth := provider.Retry(err); worth && after > 0 {
		return after, nil
	}
	return 0, err
}

// Closing reports whether a provider's answer says that the shop may not be called any more.
func Closing(err error) bool {
	var refused *provider.Refused
	var paused *provider.Paused
	return errors.As(err, &refused) || errors.As(err, &paused)
}
