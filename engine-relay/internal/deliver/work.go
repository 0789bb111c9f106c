package deliver

import (
	"context"
	"errors"
	"time"

	"storefront.internal/shared/crashpoint"
	"storefront.internal/shared/deliveries"
)

const (
	// storeTimeout bounds one transaction that must be tried although the worker stops.
	storeTimeout = 10 * time.Second
	// leaseMargin is what must be left of a lease, beyond a request's timeout, for a request to begin.
	leaseMargin = 5 * time.Second
	// settleTries is how often a settlement is tried; what is then not settled is unconfirmed when the lease expires.
	settleTries = 3
)

// work is one worker: take, send, settle, again.
func (w *Worker) work(ctx context.Context) {
	for ctx.Err() == nil {
		took, err := w.turn(ctx)
		pause := w.cfg.Poll
		if err != nil && ctx.Err() == nil {
			w.log.Error("a lane could not be delivered", "error", err)
			pause = time.Second
		}
		if (!took || err != nil) && !sleep(ctx, pause, w.wake) {
			return
		}
	}
}

// turn serves one lane. It reports false when there was nothing to do.
func (w *Worker) turn(ctx context.Context) (bool, error) {
	var calm []deliveries.Kind
	for _, k := range kinds() {
		switch may, number := w.breakers[k].ask(time.Now()); may {
		case open:
			calm = append(calm, k)
		case probe:
			took, err := w.probe(ctx, k, number)
			if took || err != nil {
				return took, err
			}
		}
	}
	if len(calm) == 0 {
		return false, nil
	}
	// What fails alone may take its whole timeout each time: it never gets more than half of the workers.
	few := int(w.alone.Load()) >= max(1, w.cfg.Workers/2)
	return w.serve(ctx, deliveries.TakeQuery{Kinds: calm, Limit: w.cfg.BatchLimit, InOrderOnly: few})
}

// probe tries an engine that failed with one delivery, preferably one that did not fail alone before.
func (w *Worker) probe(ctx context.Context, k deliveries.Kind, number int) (bool, error) {
	defer w.breakers[k].pardon(number)
	q := deliveries.TakeQuery{Kinds: []deliveries.Kind{k}, Limit: 1, InOrderOnly: true}
	took, err := w.serve(ctx, q)
	if took || err != nil {
		return took, err
	}
	q.InOrderOnly = false
	return w.serve(ctx, q)
}

func (w *Worker) serve(ctx context.Context, q deliveries.TakeQuery) (bool, error) {
	q.RelayID, q.Credential = w.cfg.RelayID, w.cfg.Engine.Credential()
	q.MaxBytes, q.Lease, q.DecisionWait = w.cfg.BatchBytes, w.cfg.Lease, w.cfg.DecisionWait
	ends, seen := time.Now().Add(w.cfg.Lease), w.refusals.Load()
	var lease *deliveries.Lease
	err := w.withTimeout(context.WithoutCancel(ctx), func(ctx context.Context) (err error) { // a stop amid the COMMIT would leave a lease that nobody has
		lease, err = w.cfg.Store.Take(ctx, q)
		return err
	})
	if errors.Is(err, deliveries.ErrBlocked) {
		return false, nil
	}
	if err != nil || lease == nil {
		return false, err
	}
	if lease.Alone {
		w.alone.Add(1)
		defer w.alone.Add(-1)
	}
	crashpoint.Hit(crashpoint.DeliverLeased)
	s := &session{w: w, lease: lease, ends: ends, seen: seen}
	s.run(ctx)
	return true, w.settle(ctx, lease, time.Since(ends.Add(-w.cfg.Lease)), s.settlement())
}

// settle ends the lease, also when the worker is being stopped.
func (w *Worker) settle(ctx context.Context, l *deliveries.Lease, took time.Duration, st deliveries.Settlement) error {
	ctx = context.WithoutCancel(ctx)
	var err error
	for try := range settleTries {
		if try > 0 {
			sleep(ctx, time.Duration(try)*200*time.Millisecond, nil)
		}
		var done deliveries.Settled
		err = w.withTimeout(ctx, func(ctx context.Context) (err error) {
			done, err = w.cfg.Store.Settle(ctx, l, st)
			return err
		})
		if err == nil {
			crashpoint.Hit(crashpoint.DeliverSettled)
			w.metrics.settled(l, took, st, done)
			return nil
		}
		if errors.Is(err, deliveries.ErrFenced) {
			w.metrics.fenced.Inc()
			w.log.Warn("a lease was lost before it was settled", "connection_id", l.ConnectionID, "kind", l.Kind.String())
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
