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

// SweepEvery is how often the subscriptions of a connection are looked at. Providers drop them after deliveries that
// failed; what happened meanwhile is found by the catch-up.
const SweepEvery = time.Hour

// sweepBatch is how many connections are taken at a time.
const sweepBatch = 50

// Sweep is a connection whose subscriptions are due to be looked at.
type Sweep struct {
	ConnectionID ident.ConnectionID
	Provider     string
	AppID        string
}

// SweepStore hands out the connections that are due. One that was handed out is not due again before its time.
type SweepStore interface {
	TakeSweeps(ctx context.Context, every time.Duration, most int) ([]Sweep, error)
}

// Sweeper mends the subscriptions of installed shops.
type Sweeper struct {
	store    SweepStore
	shops    Shops
	webhooks *Webhooks
	metrics  *Metrics
	logger   *slog.Logger
}

// NewSweeper returns a Sweeper.
func NewSweeper(store SweepStore, shops Shops, webhooks *Webhooks, metrics *Metrics, logger *slog.Logger) *Sweeper {
	return &Sweeper{store: store, shops: shops, webhooks: webhooks, metrics: metrics, logger: logger}
}

// Sweep mends every connection that is due, until none is or the context ends. One that fails is due again in its time.
func (s *Sweeper) Sweep(ctx context.Context) error {
	for {
		due, err := s.store.TakeSweeps(ctx, SweepEvery, sweepBatch)
		if err != nil || len(due) == 0 {
			return err
		}
		for _, w := range due {
			s.mend(ctx, w)
			if err := ctx.Err(); err != nil {
				return err
			}
		}
	}
}

// mend sweeps one connection. A shop that was closed meanwhile is none of the sweep's business.
func (s *Sweeper) mend(ctx context.Context, w Sweep) {
	opened, err := s.shops.Open(ctx, w.ConnectionID)
	if errors.Is(err, shop.ErrClosed) {
		return
	}
	var done Mended
	if err == nil {
		done, err = s.webhooks.Reconcile(ctx, opened, w.AppID, func(ctx context.Context) error { return ctx.Err() })
	}
	s.metrics.swept(w.Provider, done, err)
	if err != nil {
		s.logger.Warn("subscriptions of a shop could not be looked at", "connection_id", string(w.ConnectionID),
			"provider", w.Provider, "reason", string(provider.ReasonOf(err)))
	} else if done != (Mended{}) {
		s.logger.Info("subscriptions of a shop were mended", "connection_id", string(w.ConnectionID), "provider", w.Provider,
			"made", done.Made, "removed", done.Removed, "rekeyed", done.Rekeyed)
	}
}
