package bootstrap

import (
	"context"
	"errors"
	"time"

	"storefront.internal/control/internal/ingest"
	"storefront.internal/control/internal/provider"
	"storefront.internal/control/internal/shop"
	"storefront.internal/shared/catalog"
	"storefront.internal/shared/ident"
)

// margin is how far behind the last catch-up one begins: clocks differ, and a provider's listing may lag.
const margin = 10 * time.Minute

// CatchUp reads what was updated since the last catch-up of a shop. again is when to ask once more, 0 when it ended.
func (l *Loader) CatchUp(ctx context.Context, c ident.ConnectionID) (again time.Duration, err error) {
	opened, err := l.shops.Open(ctx, c)
	if err != nil {
		return 0, err
	}
	last, began, err := l.store.LastCatchUp(ctx, c)
	if err != nil {
		return 0, err
	}
	for _, e := range order() {
		after, err := l.since(ctx, opened, e, last.Add(-margin))
		if err == nil && after == 0 || e == catalog.Order && unscoped(err) {
			continue
		}
		if err == nil {
			return after, nil
		}
		if ingest.Closing(err) {
			if err := l.store.RequestCheck(ctx, c); err != nil {
				return 0, err
			}
			return 0, shop.ErrClosed
		}
		after, worth := provider.Retry(err)
		if worth && after > 0 {
			return after, nil
		}
		return 0, err
	}
	return 0, l.store.CaughtUp(ctx, c, began)
}

// unscoped reports whether an app may read the shop, as the resources before showed, but not its orders.
func unscoped(err error) bool {
	var refused *provider.Refused
	return errors.As(err, &refused)
}

// since reads one resource. It is short, so it saves no place: what interrupts it makes it begin anew.
func (l *Loader) since(ctx context.Context, opened shop.Opened, e catalog.Entity, at time.Time) (time.Duration, error) {
	var exported int64
	for cursor := provider.Cursor(""); ; {
		number, err := l.store.NextFetch(ctx)
		if err != nil {
			return 0, err
		}
		page, err := opened.Adapter.Page(ctx, opened.Store, e, at, cursor)
		if err != nil {
			return 0, err
		}
		if page.Begins {
			exported = number
		}
		if page.Exported {
			if exported == 0 { // nobody knows when it began
				return page.After, nil
			}
			number = exported
		}
		if len(page.Items) > 0 {
			outcomes, err := l.store.Apply(ctx, ingest.BatchOf(opened.Source, l.now(), page.Items, number))
			if err != nil {
				return 0, err
			}
			l.metrics.Applied(opened.Source.Provider, outcomes)
		}
		if cursor = page.Next; cursor == "" {
			return 0, nil
		}
		if page.After > 0 {
			select {
			case <-ctx.Done():
				return 0, ctx.Err()
			case <-time.After(page.After):
			}
		}
	}
}
