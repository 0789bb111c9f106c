package postgres

import (
	"context"

	"storefront.internal/shared/deliveries"
)

// Queue is the delivery queue with its errors translated as those of this package.
type Queue struct{ store *deliveries.Store }

// NewQueue returns the Queue.
func NewQueue(store *deliveries.Store) *Queue { return &Queue{store: store} }

// View reads operation 9.
func (q *Queue) View(ctx context.Context) (deliveries.View, error) {
	v, err := q.store.View(ctx)
	return v, Translate("view queue", err)
}

// Resume is E5.
func (q *Queue) Resume(ctx context.Context) error {
	return Translate("resume delivery", q.store.Resume(ctx))
}

// Dead reads a page of E6.
func (q *Queue) Dead(ctx context.Context, d deliveries.DeadQuery) (deliveries.DeadPage, error) {
	page, err := q.store.Dead(ctx, d)
	return page, Translate("list dead", err)
}

// Replay is the writing half of E6.
func (q *Queue) Replay(ctx context.Context, r deliveries.ReplayQuery) (int, error) {
	n, err := q.store.Replay(ctx, r)
	return n, Translate("replay dead", err)
}
