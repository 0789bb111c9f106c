package postgres

import (
	"context"

	"storefront.internal/shared/deliveries"
)

// Queue is the delivery queue with translated errors.
type Queue struct{ store *deliveries.Store }

// NewQueue returns the Queue.
func NewQueue(store *deliveries.Store) *Queue { return &Queue{store: store} }

// View reads the queue view.
func (q *Queue) View(ctx context.Context) (deliveries.View, error) {
	v, err := q.store.View(ctx)
	return v, Translate("view queue", err)
}

// Resume lets a blocked relay try its credential again.
func (q *Queue) Resume(ctx context.Context) error {
	return Translate("resume delivery", q.store.Resume(ctx))
}

// Dead reads a page of dead letters.
func (q *Queue) Dead(ctx context.Context, d deliveries.DeadQuery) (deliveries.DeadPage, error) {
	page, err := q.store.ListDead(ctx, d)
	return page, Translate("list dead", err)
}

// Replay puts dead letters back into the queue.
func (q *Queue) Replay(ctx context.Context, r deliveries.ReplayQuery) (int, error) {
	n, err := q.store.ReplayDead(ctx, r)
	return n, Translate("replay dead", err)
}
