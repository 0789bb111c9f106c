package observation

import (
	"context"

	"storefront.internal/shared/failpoint"
	"storefront.internal/shared/ident"
)

// ServedItem is what edges serve of an item. Body is nil for a deleted one.
type ServedItem struct {
	ItemID          ident.ItemID
	RefreshRevision int64
	Body            []byte
}

// ItemCache is Redis, where edges read items before they ask PostgreSQL.
type ItemCache interface {
	// PutItems writes items that are newer than the stored ones and returns how many it wrote.
	PutItems(ctx context.Context, c ident.ConnectionID, items []ServedItem) (written int, err error)
}

// ItemStore reads what edges serve.
type ItemStore interface {
	ServedItems(ctx context.Context, c ident.ConnectionID, items []ident.ItemID) ([]ServedItem, error)
}

// Publisher writes items to the cache of the edges.
type Publisher struct {
	store   ItemStore
	cache   ItemCache
	metrics *Metrics
}

// NewPublisher returns a Publisher.
func NewPublisher(store ItemStore, cache ItemCache, metrics *Metrics) *Publisher {
	return &Publisher{store: store, cache: cache, metrics: metrics}
}

// Push writes the present state of items. It may be repeated at any time.
func (p *Publisher) Push(ctx context.Context, c ident.ConnectionID, items []ident.ItemID) error {
	served, err := p.store.ServedItems(ctx, c, items)
	failpoint.Hit(failpoint.ItemsRead)
	if err == nil {
		var written int
		if written, err = p.cache.PutItems(ctx, c, served); err == nil {
			failpoint.Hit(failpoint.ItemsWritten)
			p.metrics.pushes.WithLabelValues("written").Add(float64(written))
			p.metrics.pushes.WithLabelValues("newer").Add(float64(len(served) - written))
			return nil
		}
	}
	p.metrics.pushes.WithLabelValues("failed").Add(float64(len(items)))
	return err
}
