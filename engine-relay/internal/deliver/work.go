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
		pause := w.cfg.Poll
		if err != nil && ctx.Err() == nil {
			w.log.Error("a lane could not be delivered", "error", err)
			pause = time.Second
		}
		if !served || err != nil {
			sleepUntil(ctx, pause, w.wake)
		}
	}
}

// serveNext serves one lane. It reports false when there was nothing to do.
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
		Kinds: allowedKinds, Limit: w.cfg.BatchLimit, SkipRetryLanes: isolatedSlotsBusy,
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
	var lease *deliveries.Lease
	// A stop must not interrupt the COMMIT: the lane would stay leased with no worker on it.
	err := w.withTimeout(context.WithoutCancel(ctx), func(ctx context.Context) (err error) {
		lease, err = w.cfg.Store.Lease(ctx, q)
		return err
	})
	if errors.Is(err, deliveries.ErrBlocked) {
		return false, nil
	}
	if err != nil || lease == nil {
		return false, err
	}
	if lease.Isolated {
		w.isolatedWorkers.Add(1)
		defer w.isolatedWorkers.Add(-1)
	}
	failpoint.Hit(failpoint.DeliverLeased)
	s := &session{w: w, lease: lease, leaseEnds: leaseEnds, refusalsAtLease: refusals}
	s.run(ctx)
	return true, w.complete(ctx, lease, time.Since(leaseEnds.Add(-w.cfg.Lease)), s.completion())
}

// complete ends the lease, even while the worker stops.
func (w *Worker) complete(
	ctx context.Context, l *deliveries.Lease, took time.Duration, c deliveries.Completion,
) error {
	ctx = context.WithoutCancel(ctx)
	var err error
	for attempt := range completeAttempts {
		if attempt > 0 {
			_ = backoff.Sleep(ctx, time.Duration(attempt)*200*time.Millisecond)
		}
		var done deliveries.Completed
		err = w.withTimeout(ctx, func(ctx context.Context) (err error) {
			done, err = w.cfg.Store.Complete(ctx, l, c)
			return err
		})
		if err == nil {
			failpoint.Hit(failpoint.DeliverSettled)
			w.metrics.completed(l, took, c, done)
			return nil
		}
		if errors.Is(err, deliveries.ErrLeaseLost) {
			w.metrics.fenced.Inc()
			w.log.Warn("a lease expired before it was completed",
				"connection_id", l.ConnectionID, "kind", l.Kind.String())
			return nil
		}
	}
	return err
}

func (w *Worker) withTimeout(ctx context.Context, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	return f(ctx)
}
