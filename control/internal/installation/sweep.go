package installation

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"storefront.internal/control/internal/provider"
	"storefront.internal/control/internal/shop"
	"storefront.internal/shared/ident"
)

// SweepEvery is the time between two sweeps of a connection. Providers drop subscriptions after failed
// deliveries; the catch-up finds what happened meanwhile.
const SweepEvery = time.Hour

// sweepBatch is how many connections are taken at a time.
const sweepBatch = 50

// DueShop is a connection whose subscriptions are due for a sweep.
type DueShop struct {
	ConnectionID ident.ConnectionID
	Provider     string
	AppID        string
}

// SweepStore hands out connections that are due. A connection is not due again before the interval has
// passed.
type SweepStore interface {
	TakeDueShops(ctx context.Context, every time.Duration, most int) ([]DueShop, error)
}

// Sweeper repairs the subscriptions of installed shops.
type Sweeper struct {
	store         SweepStore
	shops         *shop.Shops
	subscriptions *Subscriptions
	metrics       *Metrics
	logger        *slog.Logger
}

// NewSweeper returns a Sweeper.
func NewSweeper(store SweepStore, shops *shop.Shops, webhooks *Subscriptions, metrics *Metrics,
	logger *slog.Logger) *Sweeper {
	return &Sweeper{store: store, shops: shops, subscriptions: webhooks, metrics: metrics, logger: logger}
}

// Sweep repairs every due connection, until none is due or the context ends. A failed one is due again after
// the interval.
func (s *Sweeper) Sweep(ctx context.Context) error {
	for {
		due, err := s.store.TakeDueShops(ctx, SweepEvery, sweepBatch)
		if err != nil || len(due) == 0 {
			return err
		}
		for _, w := range due {
			s.reconcile(ctx, w)
			if err := ctx.Err(); err != nil {
				return err
			}
		}
	}
}

// reconcile sweeps one connection. It skips a shop that was closed meanwhile.
func (s *Sweeper) reconcile(ctx context.Context, w DueShop) {
	opened, err := s.shops.Open(ctx, w.ConnectionID)
	if errors.Is(err, shop.ErrClosed) || errors.Is(err, shop.ErrDisabled) {
		return
	}
	var done Repairs
	if err == nil {
		done, err = s.subscriptions.Reconcile(ctx, opened, w.AppID,
			func(ctx context.Context) error { return ctx.Err() })
	}
	s.metrics.swept(w.Provider, done, err)
	if err != nil {
		s.logger.Warn("subscriptions of a shop could not be checked", "connection_id", string(w.ConnectionID),
			"provider", w.Provider, "reason", string(provider.ReasonOf(err)))
	} else if done != (Repairs{}) {
		s.logger.Info("subscriptions of a shop were repaired", "connection_id", string(w.ConnectionID),
			"provider", w.Provider,
			"made", done.Created, "removed", done.Removed, "rekeyed", done.Rotated)
	}
}
