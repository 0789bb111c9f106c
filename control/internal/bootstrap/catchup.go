package bootstrap

import (
	"context"
	"errors"
	"time"

	"storefront.internal/control/internal/ingest"
	"storefront.internal/control/internal/provider"
	"storefront.internal/control/internal/shop"
	"storefront.internal/shared/backoff"
	"storefront.internal/shared/catalog"
	"storefront.internal/shared/ident"
)

// overlap is how far a catch-up reaches back before the last one: clocks differ, and a provider's listing may
// lag.
const overlap = 10 * time.Minute

// CatchUp reads what was updated since the last catch-up of a shop. snooze is the time until another attempt,
// 0 when the catch-up is complete.
func (l *Runner) CatchUp(ctx context.Context, c ident.ConnectionID) (snooze time.Duration, err error) {
	opened, err := l.shops.Open(ctx, c)
	if err != nil {
		return 0, err
	}
	last, began, err := l.store.LastCatchUp(ctx, c)
	if err != nil {
		return 0, err
	}
	for _, e := range resourceOrder() {
		after, err := l.readUpdated(ctx, opened, e, last.Add(-overlap))
		if err == nil && after == 0 || e == catalog.Order && forbidden(err) {
			continue
		}
		if err == nil {
			return after, nil
		}
		if ingest.AccessDenied(err) {
			if err := l.store.EnqueueShopCheck(ctx, c); err != nil {
				return 0, err
			}
			return 0, shop.ErrClosed
		}
		after, retryable := provider.RetryAfter(err)
		if retryable && after > 0 {
			return after, nil
		}
		return 0, err
	}
	return 0, l.store.SetLastCatchUp(ctx, c, began)
}

// forbidden reports whether the provider refused. For orders that means a missing scope: the resources before
// were read.
func forbidden(err error) bool {
	var refused *provider.CredentialRefused
	return errors.As(err, &refused)
}

// readUpdated reads one resource. It saves no progress, since it is short: after an interruption it starts
// again.
func (l *Runner) readUpdated(ctx context.Context, opened shop.Opened, e catalog.Entity,
	at time.Time) (time.Duration, error) {
	var exported int64
	for cursor := provider.Cursor(""); ; {
		fetchSeq, err := l.store.NextFetchSeq(ctx)
		if err != nil {
			return 0, err
		}
		page, err := opened.Adapter.Page(ctx, opened.Store, e, at, cursor)
		if err != nil {
			return 0, err
		}
		if page.SnapshotStarted {
			exported = fetchSeq
		}
		if page.FromSnapshot {
			if exported == 0 { // an export of unknown age: wait for the next one
				return page.ReadyAfter, nil
			}
			fetchSeq = exported
		}
		if len(page.Items) > 0 {
			outcomes, err := l.store.Apply(ctx, ingest.NewBatch(opened.Source, l.now(), page.Items, fetchSeq))
			if err != nil {
				return 0, err
			}
			l.metrics.Applied(opened.Source.Provider, outcomes)
		}
		if cursor = page.Next; cursor == "" {
			return 0, nil
		}
		if err := backoff.Sleep(ctx, page.ReadyAfter); err != nil {
			return 0, err
		}
	}
}
