package record

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"storefront.internal/shared/crashpoint"
	"storefront.internal/shared/pg"
)

// Recorder stores batches. Several may run it at once.
type Recorder struct {
	store   Store
	log     *slog.Logger
	metrics *Metrics
	pause   func(ctx context.Context, attempt int) error
	queued  func()
	traced  func(began time.Time, traceparents []string)
	fault   atomic.Pointer[error]
}

// Config is what a Recorder needs.
type Config struct {
	Store   Store
	Logger  *slog.Logger
	Metrics *Metrics
	// Pause waits before an attempt (1 is the first repetition) and returns the context's error when it ends; nil waits
	// 50 ms, doubled each time up to 5 s, with jitter.
	Pause func(ctx context.Context, attempt int) error
	// Queued is told after each commit that put deliveries into the queue; nil tells nobody. It must not wait.
	Queued func()
	// Traced is told of each commit: when its transaction began, and the W3C traceparents of the requests that it stored; nil
	// tells nobody. It must not wait.
	Traced func(began time.Time, traceparents []string)
}

// New returns a Recorder.
func New(c Config) *Recorder {
	if c.Pause == nil {
		c.Pause = pause
	}
	if c.Queued == nil {
		c.Queued = func() {}
	}
	return &Recorder{store: c.Store, log: c.Logger, metrics: c.Metrics, pause: c.Pause, queued: c.Queued, traced: c.Traced}
}

// Record stores the batch, however long that takes. Its only errors are the context's; then the batch may or may not
// lie stored, and is to be read again.
func (r *Recorder) Record(ctx context.Context, b *Batch) error {
	return r.record(ctx, b.work())
}

func (r *Recorder) record(ctx context.Context, w work) error {
	for attempt := 1; ; attempt++ {
		err := r.transact(ctx, w)
		if err == nil {
			r.fault.Store(nil)
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if pg.Class(err) == pg.Poison {
			if err = r.isolate(ctx, w, err); err == nil {
				return nil
			}
		}
		r.complain(err, w, attempt)
		if err := r.pause(ctx, attempt); err != nil {
			return err
		}
		if attempt >= patience && pg.State(err) == statementTimeout && w.wide() {
			return r.separate(ctx, w, err)
		}
	}
}

// A transaction that took too long this many times may be too much for the store as it is, and is done in halves.
const (
	patience         = 3
	statementTimeout = "57014"
)

// transact stores the work in one transaction.
func (r *Recorder) transact(ctx context.Context, w work) error {
	began := time.Now()
	var out outcome
	err := r.store.InTx(ctx, func(tx Tx) error {
		var err error
		if out, err = w.apply(ctx, tx); err != nil {
			return err
		}
		crashpoint.Hit(crashpoint.SinkBeforeCommit)
		return nil
	})
	if err != nil {
		return err
	}
	crashpoint.Hit(crashpoint.SinkAfterCommit)
	r.metrics.committed(w, out, time.Since(began))
	if r.traced != nil {
		r.traced(began, w.traceparents())
	}
	if out.stored > 0 {
		r.queued()
	}
	return nil
}

// complain tells what goes wrong: a schema that does not fit stops the sink, and is the operator's; the rest passes.
func (r *Recorder) complain(err error, w work, attempt int) {
	class := pg.Class(err)
	r.metrics.retried(class)
	r.fault.Store(&err)
	attrs := []any{"error", err, "class", class.String(), "signals", len(w.entries), "decisions", len(w.decisions), "attempt", attempt}
	if class == pg.Schema || class == pg.Other {
		r.log.Error("sink: stopped: the store refuses the statements, not the data", attrs...)
		return
	}
	r.log.Warn("sink: the store is in trouble, trying again", attrs...)
}

// Ready returns why nothing is being stored, nil when the last transaction went through.
func (r *Recorder) Ready(context.Context) error {
	if fault := r.fault.Load(); fault != nil {
		return errors.Join(errors.New("the sink cannot store"), *fault)
	}
	return nil
}

func pause(ctx context.Context, attempt int) error {
	const first, most = 50 * time.Millisecond, 5 * time.Second
	d := most
	if attempt < 8 {
		d = min(most, first<<(attempt-1))
	}
	timer := time.NewTimer(d/2 + rand.N(d/2))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
