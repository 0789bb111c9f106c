// Package queueview owns what people see of the queue of interactions and how they steer it: the view (operation 9),
// leaving `blocked` (E5), the dead and their replay (E6). It bounds what may be asked at once. It refuses to deliver
// anything, and it keeps nothing: package deliveries of shared owns the queue.
package queueview

import (
	"context"

	"storefront.internal/shared/deliveries"
	"storefront.internal/shared/fault"
)

// MaxReplay is the most signals that one replay may name.
const MaxReplay = 500

// Queue is where interactions wait.
type Queue interface {
	View(ctx context.Context) (deliveries.View, error)
	Resume(ctx context.Context) error
	Dead(ctx context.Context, q deliveries.DeadQuery) (deliveries.DeadPage, error)
	Replay(ctx context.Context, q deliveries.ReplayQuery) (int, error)
}

// Service is the queue within its bounds.
type Service struct{ queue Queue }

// New returns a Service.
func New(queue Queue) *Service { return &Service{queue: queue} }

// View reads the queue; it takes no row and touches none (operation 9).
func (s *Service) View(ctx context.Context) (deliveries.View, error) { return s.queue.View(ctx) }

// Resume leaves `blocked` after the token was fixed; not_blocked otherwise (E5).
func (s *Service) Resume(ctx context.Context) error { return s.queue.Resume(ctx) }

// Dead lists dead interactions, newest first (E6). A limit of 0 is the default one.
func (s *Service) Dead(ctx context.Context, q deliveries.DeadQuery) (deliveries.DeadPage, error) {
	if q.Limit == 0 {
		q.Limit = deliveries.DefaultDeadLimit
	}
	if q.Limit < 1 || q.Limit > deliveries.MaxDeadLimit {
		return deliveries.DeadPage{}, fault.New(fault.InvalidRequest, "limit is a number from 1 to 500.")
	}
	return s.queue.Dead(ctx, q)
}

// Replay puts dead interactions back into the queue and returns how many (E6).
func (s *Service) Replay(ctx context.Context, q deliveries.ReplayQuery) (int, error) {
	if q.ConnectionID == "" && len(q.SignalIDs) == 0 {
		return 0, fault.Invalid("", "missing", "Names connection_id, signal_ids or both.")
	}
	if len(q.SignalIDs) > MaxReplay {
		return 0, fault.Invalid("/signal_ids", "too_many", "Names at most 500 signals.")
	}
	return s.queue.Replay(ctx, q)
}
