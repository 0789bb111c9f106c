package deliver

import (
	"context"
	"errors"
	"time"

	"storefront.internal/shared/backoff"
	"storefront.internal/shared/breaker"
	"storefront.internal/shared/deliveries"
	"storefront.internal/shared/failpoint"
)

const (
	// storeTimeout bounds a transaction that runs even while the worker stops.
	storeTimeout = 10 * time.Second
	// leaseMargin must remain of a lease, beyond a request's timeout, when a request begins.
	leaseMargin = 5 * time.Second
	// completeAttempts bounds the attempts to complete a lease. After that, its deliveries become unconfirmed
	// when the lease expires.
	completeAttempts = 3
)

// work is the loop of one worker.
func (w *Worker) work(ctx context.Context) {
	for ctx.Err() == nil {
		served, err := w.serveNext(ctx)
		if err != nil && ctx.Err() == nil {
			w.log.Error("a lane could not be delivered", "error", err)
			_ = backoff.Sleep(ctx, time.Second)
		} else if !served {
			w.idle(ctx)
		}
	}
}

// serveNext serves the next lanes. It reports false when there was nothing to do.
func (w *Worker) serveNext(ctx context.Context) (bool, error) {
	var allowedKinds []deliveries.Kind
	for _, k := range kinds() {
		permit, ok := w.breakers[k].Acquire()
		switch {
		case !ok:
		case permit.Probe():
			if served, err := w.probe(ctx, k, permit); served || err != nil {
				return served, err
			}
		default:
			allowedKinds = append(allowedKinds, k)
		}
	}
	if len(allowedKinds) == 0 {
		return false, nil
	}
	// A delivery in a retry lane may take its whole timeout each time: retry lanes get at most half of the
	// workers.
	isolatedSlotsBusy := int(w.isolatedWorkers.Load()) >= max(1, w.cfg.Workers/2)
	return w.serve(ctx, deliveries.LeaseQuery{
		Kinds: allowedKinds, Lanes: w.cfg.BatchLanes, Limit: w.cfg.BatchLimit,
		SkipRetryLanes: isolatedSlotsBusy,
	})
}

// probe tries an engine that failed with a single delivery, preferably not one from a retry lane.
func (w *Worker) probe(ctx context.Context, k deliveries.Kind, permit breaker.Permit) (bool, error) {
	defer permit.Release()
	q := deliveries.LeaseQuery{Kinds: []deliveries.Kind{k}, Limit: 1, SkipRetryLanes: true}
	if served, err := w.serve(ctx, q); served || err != nil {
		return served, err
	}
	q.SkipRetryLanes = false
	return w.serve(ctx, q)
}

func (w *Worker) serve(ctx context.Context, q deliveries.LeaseQuery) (bool, error) {
	q.RelayID, q.Credential = w.cfg.RelayID, w.cfg.Engine.Credential()
	q.MaxBytes, q.TTL, q.DecisionWait = w.cfg.BatchBytes, w.cfg.Lease, w.cfg.DecisionWait
	leaseEnds, refusals := time.Now().Add(w.cfg.Lease), w.refusals.Load()
	var leases []*deliveries.Lease
	// A stop must not interrupt the COMMIT: the lanes would stay leased with no worker on them.
	err := w.withTimeout(context.WithoutCancel(ctx), func(ctx context.Context) (err error) {
		leases, err = w.cfg.Store.Lease(ctx, q)
		return err
	})
	if errors.Is(err, deliveries.ErrBlocked) {
		return false, nil
	}
	if err != nil || len(leases) == 0 {
		return false, err
	}
	w.wakeOne() // there may be more
	s := newSession(w, leases, leaseEnds, refusals)
	if s.isolated {
		w.isolatedWorkers.Add(1)
		defer w.isolatedWorkers.Add(-1)
	}
	failpoint.Hit(failpoint.DeliverLeased)
	s.run(ctx)
	return true, w.complete(ctx, time.Since(leaseEnds.Add(-w.cfg.Lease)), s.completion())
}

// complete ends the leases, even while the worker stops.
func (w *Worker) complete(ctx context.Context, took time.Duration, c deliveries.Completion) error {
	ctx = context.WithoutCancel(ctx)
	var err error
	for attempt := range completeAttempts {
		if attempt > 0 {
			_ = backoff.Sleep(ctx, time.Duration(attempt)*200*time.Millisecond)
		}
		var done deliveries.Completed
		err = w.withTimeout(ctx, func(ctx context.Context) (err error) {
			done, err = w.cfg.Store.Complete(ctx, c)
			return err
		})
		if err == nil {
			failpoint.Hit(failpoint.DeliverSettled)
			w.metrics.completed(took, c, done)
			w.reportLost(done.Lost)
			return nil
		}
	}
	return err
}

func (w *Worker) reportLost(lost []*deliveries.Lease) {
	w.metrics.fenced.Add(float64(len(lost)))
	if len(lost) > 0 {
		w.log.Warn("leases expired before they were completed",
			"lanes", len(lost), "connection_id", lost[0].ConnectionID, "kind", lost[0].Kind.String())
	}
}

func (w *Worker) withTimeout(ctx context.Context, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	return f(ctx)
}
