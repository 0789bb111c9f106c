package sink

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"storefront.internal/shared/backoff"
	"storefront.internal/shared/failpoint"
	"storefront.internal/shared/pg"
)

// Writer stores batches. It is safe for concurrent use.
type Writer struct {
	store   Store
	log     *slog.Logger
	metrics *Metrics
	pause   func(ctx context.Context, attempt int) error
	queued  func()
	traced  func(began time.Time, traceparents []string)
	err     atomic.Pointer[error] // of the last transaction, nil after a success
}

// Config is what a Writer needs.
type Config struct {
	Store   Store
	Logger  *slog.Logger
	Metrics *Metrics
	// Pause waits after a failed attempt, counted from 1, and returns the context's error when it ends. Nil
	// waits 50 ms, doubled each time up to 5 s, with jitter.
	Pause func(ctx context.Context, attempt int) error
	// Queued is called after each commit that enqueued deliveries; it may be nil and must not block.
	Queued func()
	// Traced is called after each commit with the beginning of the transaction and the W3C traceparents of
	// the requests that it stored; it may be nil and must not block.
	Traced func(began time.Time, traceparents []string)
}

// New returns a Writer.
func New(c Config) *Writer {
	if c.Pause == nil {
		retry := backoff.Policy{Min: 50 * time.Millisecond, Max: 5 * time.Second}
		c.Pause = func(ctx context.Context, attempt int) error {
			return backoff.Sleep(ctx, retry.Delay(attempt))
		}
	}
	if c.Queued == nil {
		c.Queued = func() {}
	}
	return &Writer{
		store: c.Store, log: c.Logger, metrics: c.Metrics, pause: c.Pause, queued: c.Queued, traced: c.Traced,
	}
}

// Write stores the batch, however long that takes. The only errors are the context's and ErrBehind: then the
// batch may be stored or not, and must be read again.
func (w *Writer) Write(ctx context.Context, b *Batch) error {
	err := w.write(ctx, b.transaction())
	if err != nil { // the batch is given up, and with it the failure to store it
		w.err.Store(nil)
	}
	return err
}

func (w *Writer) write(ctx context.Context, b batchTx) error {
	for attempt := 1; ; attempt++ {
		err := w.transact(ctx, b)
		if err == nil {
			w.err.Store(nil)
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if errors.Is(err, ErrBehind) {
			return err
		}
		if pg.Class(err) == pg.Poison {
			if err = w.isolate(ctx, b, err); err == nil || errors.Is(err, ErrBehind) {
				return err
			}
		}
		w.reportFailure(err, b, attempt)
		if err := w.pause(ctx, attempt); err != nil {
			return err
		}
		if attempt >= timeoutAttempts && pg.SQLState(err) == statementTimeout && b.splittable() {
			return w.writeHalves(ctx, b, err)
		}
	}
}

// After this many statement timeouts a batch counts as too large for the database, and is stored in halves.
const (
	timeoutAttempts  = 3
	statementTimeout = "57014"
)

// transact stores the batch in one transaction.
func (w *Writer) transact(ctx context.Context, b batchTx) error {
	began := time.Now()
	var out outcome
	err := w.store.InTx(ctx, func(tx Tx) error {
		var err error
		if out, err = b.apply(ctx, tx); err != nil {
			return err
		}
		failpoint.Hit(failpoint.SinkBeforeCommit)
		return nil
	})
	if err != nil {
		return err
	}
	failpoint.Hit(failpoint.SinkAfterCommit)
	if !b.again {
		w.metrics.committed(b, out, time.Since(began))
	}
	if w.traced != nil {
		w.traced(began, b.traceparents())
	}
	if out.stored > 0 {
		w.queued()
	}
	return nil
}

// reportFailure logs at error level when an operator has to act, as for a schema that does not fit.
func (w *Writer) reportFailure(err error, b batchTx, attempt int) {
	class := pg.Class(err)
	w.metrics.retried(class)
	w.err.Store(&err)
	attrs := []any{"error", err, "class", class.String(),
		"signals", len(b.signals), "decisions", len(b.decisions), "attempt", attempt}
	if class == pg.Schema || class == pg.Other {
		w.log.Error("sink: stopped: PostgreSQL refuses the statements, not the data", attrs...)
		return
	}
	w.log.Warn("sink: PostgreSQL failed, trying again", attrs...)
}

// Ready returns why nothing is being stored, nil when the last transaction succeeded or its batch was given
// up.
func (w *Writer) Ready(context.Context) error {
	if err := w.err.Load(); err != nil {
		return errors.Join(errors.New("the sink cannot store"), *err)
	}
	return nil
}
