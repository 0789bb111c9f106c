package installation

import (
	"context"
	"log/slog"

	"storefront.internal/control/internal/provider"
	"storefront.internal/control/internal/shop"
	"storefront.internal/shared/ident"
)

// SweepStore tells the app of installed shops.
type SweepStore interface {
	// AppID returns not_found for a connection that is not installed.
	AppID(ctx context.Context, c ident.ConnectionID) (string, error)
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

// Check makes the subscriptions of a shop those that are wanted. What fails is counted and logged, and is
// left to the next check. It returns shop.ErrClosed or shop.ErrDisabled for a shop that may not be called.
func (s *Sweeper) Check(ctx context.Context, c ident.ConnectionID) error {
	opened, err := s.shops.Open(ctx, c)
	if err != nil {
		return err
	}
	app, err := s.store.AppID(ctx, c)
	if err != nil {
		return err
	}
	name := opened.Source.Provider
	done, err := s.subscriptions.Reconcile(ctx, opened, app,
		func(ctx context.Context) error { return ctx.Err() })
	s.metrics.swept(name, done, err)
	if err != nil {
		s.logger.Warn("subscriptions of a shop could not be checked", "connection_id", string(c),
			"provider", name, "reason", string(provider.ReasonOf(err)))
	} else if done != (Repairs{}) {
		s.logger.Info("subscriptions of a shop were repaired", "connection_id", string(c),
			"provider", name, "made", done.Created, "removed", done.Removed, "rekeyed", done.Rotated)
	}
	return ctx.Err()
}
