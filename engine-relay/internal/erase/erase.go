package erase

import (
	"context"
	"log/slog"
	"time"

	"storefront.internal/engine-relay/internal/record"
	"storefront.internal/shared/crashpoint"
	"storefront.internal/shared/deliveries"
	"storefront.internal/shared/ident"
	"storefront.internal/shared/signal"
)

// Subject is whom a request is about, and before which instant.
type Subject struct {
	ID     string
	Before time.Time
}

// Work is requests of one connection that this relay has claimed.
type Work struct {
	By           string
	ConnectionID ident.ConnectionID
	Everybody    time.Time // zero: not everybody
	Visitors     []Subject
	Orders       []Subject
}

// Erased is the work as the sink knows it.
func (w *Work) Erased() record.Erased {
	e := record.Erased{}
	if !w.Everybody.IsZero() {
		e[signal.ErasureDigest(w.ConnectionID, signal.ConnectionSubject, "")] = w.Everybody
	}
	for _, v := range w.Visitors {
		e[signal.ErasureDigest(w.ConnectionID, signal.VisitorSubject, v.ID)] = v.Before
	}
	for _, o := range w.Orders {
		e[signal.ErasureDigest(w.ConnectionID, signal.OrderSubject, o.ID)] = o.Before
	}
	return e
}

// Store is where requests and what they are about lie. Each method is one transaction and may be repeated.
type Store interface {
	// Claim takes up requests of one connection, nil when there are none.
	Claim(ctx context.Context, by string, life time.Duration, most int) (*Work, error)
	// Renew keeps a claim, and reports false when it is another's.
	Renew(ctx context.Context, w *Work, life time.Duration) (mine bool, err error)
	// Release ends a claim with nothing said.
	Release(ctx context.Context, w *Work) error
	// Outlast returns when every sink that has not seen the requests has ended.
	Outlast(ctx context.Context) error
	// Buyers asks for the erasure of the visitors who bought the orders, and forgets the requests that brought those
	// signals; by pages. next is nil behind the last.
	Buyers(ctx context.Context, w *Work, from []byte, limit int) (next []byte, err error)
	// Decisions and Signals forget the next rows and return how many they found.
	Decisions(ctx context.Context, w *Work, limit int) (found int, err error)
	Signals(ctx context.Context, w *Work, limit int) (found int, err error)
	// Audits forgets everybody's requests, by pages.
	Audits(ctx context.Context, w *Work, from []byte, limit int) (next []byte, err error)
	// Parked forgets what lies parked, by pages. next is 0 behind the last.
	Parked(ctx context.Context, w *Work, from int64, limit int) (next int64, err error)
	// Complete ends the requests that were not asked anew meanwhile, and returns how many.
	Complete(ctx context.Context, w *Work) (completed int, err error)
	// Pending returns how many requests are not done, and the age of the oldest.
	Pending(ctx context.Context) (n int, oldest time.Duration, err error)
}

// Queue is the queue to the engine (package deliveries).
type Queue interface {
	Mark(ctx context.Context, c ident.ConnectionID) (deliveries.Mark, error)
	RewriteDead(ctx context.Context, r deliveries.Rewrite, from deliveries.Place) (next deliveries.Place, more bool, err error)
	RewriteWaiting(ctx context.Context, r deliveries.Rewrite, from deliveries.Place) (next deliveries.Place, more bool, err error)
	RewriteRest(ctx context.Context, r deliveries.Rewrite, m deliveries.Mark) ([]deliveries.Sent, error)
	Sending(ctx context.Context, c ident.ConnectionID, sent []deliveries.Sent) (bool, error)
}

// Config is what an Eraser needs.
type Config struct {
	Store   Store
	Queue   Queue
	RelayID string
	Logger  *slog.Logger
	Metrics *Metrics
}

const (
	poll      = time.Second
	pause     = 100 * time.Millisecond // while somebody sends
	life      = 20 * time.Second       // of a claim
	mostAtOne = 100                    // requests that are worked on at a time
	chunk     = 1000                   // rows of a transaction
)

// Eraser executes requests until it is told to stop. Several may run at once.
type Eraser struct{ Config }

// New returns an Eraser.
func New(c Config) *Eraser { return &Eraser{c} }

// Run looks for requests and executes them until ctx ends.
func (e *Eraser) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		found, err := e.turn(ctx)
		if err != nil && ctx.Err() == nil {
			e.Metrics.failures.Inc()
			e.Logger.Error("an erasure failed, trying again", "error", err)
		}
		e.measure(ctx)
		if !found || err != nil {
			sleep(ctx, poll)
		}
	}
	return nil
}

// turn executes the next requests. It reports false when there are none.
func (e *Eraser) turn(ctx context.Context) (found bool, err error) {
	w, err := e.Store.Claim(ctx, e.RelayID, life, mostAtOne)
	if err != nil || w == nil {
		return false, err
	}
	if err := e.execute(ctx, w); err != nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = e.Store.Release(ctx, w) // or it ends by itself
		return true, err
	}
	return true, nil
}

// execute does the whole work, each step again from its begin when a relay died in it.
func (e *Eraser) execute(ctx context.Context, w *Work) error {
	if err := e.Store.Outlast(ctx); err != nil {
		return err
	}
	steps := []func(context.Context, *Work) error{e.buyers, e.decisions, e.signals, e.audits, e.parked}
	sent, err := e.queue(ctx, w)
	if err != nil {
		return err
	}
	for _, step := range steps {
		if err := step(ctx, w); err != nil {
			return err
		}
	}
	if err := e.unsent(ctx, w, sent); err != nil {
		return err
	}
	n, err := e.Store.Complete(ctx, w)
	if err != nil {
		return err
	}
	e.Metrics.completed.Add(float64(n))
	e.Logger.Info("erasures completed", "connection_id", w.ConnectionID, "erasures", n)
	return nil
}

func (e *Eraser) measure(ctx context.Context) {
	n, oldest, err := e.Store.Pending(ctx)
	if err != nil {
		return // the next claim says what is wrong
	}
	e.Metrics.pending.Set(float64(n))
	e.Metrics.oldest.Set(oldest.Seconds())
}

// next is between two chunks: the claim is kept.
func (e *Eraser) next(ctx context.Context, w *Work) error {
	crashpoint.Hit(crashpoint.EraseChunk)
	mine, err := e.Store.Renew(ctx, w, life)
	if err == nil && !mine {
		err = errLost
	}
	return err
}

func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
