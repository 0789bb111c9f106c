package erase

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"storefront.internal/engine-relay/internal/sink"
	"storefront.internal/shared/backoff"
	"storefront.internal/shared/deliveries"
	"storefront.internal/shared/failpoint"
	"storefront.internal/shared/ident"
	"storefront.internal/shared/signal"
)

// Subject is whom a request is about, and before which instant.
type Subject struct {
	ID     string
	Before time.Time
}

// Claim is requests of one connection that one relay executes.
type Claim struct {
	By              string // the relay
	ConnectionID    ident.ConnectionID
	WholeConnection time.Time // the instant of a request about all visitors; zero when there is none
	Visitors        []Subject
	Orders          []Subject
}

// Erasures returns the requests in the form that the sink uses.
func (c *Claim) Erasures() sink.Erasures {
	e := sink.Erasures{}
	if !c.WholeConnection.IsZero() {
		e[signal.ErasureDigest(c.ConnectionID, signal.ConnectionSubject, "")] = c.WholeConnection
	}
	for _, v := range c.Visitors {
		e[signal.ErasureDigest(c.ConnectionID, signal.VisitorSubject, v.ID)] = v.Before
	}
	for _, o := range c.Orders {
		e[signal.ErasureDigest(c.ConnectionID, signal.OrderSubject, o.ID)] = o.Before
	}
	return e
}

// Store has the requests and the data that they are about. Each method is one transaction and may be
// repeated.
type Store interface {
	// Claim claims requests of one connection for a time; it returns nil when there are none.
	Claim(ctx context.Context, by string, ttl time.Duration, limit int) (*Claim, error)
	// Renew extends a claim, and reports false when the relay does not hold it any more.
	Renew(ctx context.Context, c *Claim, ttl time.Duration) (held bool, err error)
	// Release ends a claim without completing its requests.
	Release(ctx context.Context, c *Claim) error
	// WaitForRunningSinks returns when every sink transaction has ended that has not seen the requests.
	WaitForRunningSinks(ctx context.Context) error
	// RequestBuyers requests the erasure of the visitors who bought the orders: of each order the first most
	// ones. It returns how many orders have more.
	RequestBuyers(ctx context.Context, c *Claim, most int) (crowded int, err error)
	// EraseOrders erases who bought the orders from the signals that say so, and the audit of the requests
	// that brought them, by pages. next is zero after the last page.
	EraseOrders(ctx context.Context, c *Claim, from [16]byte, limit int) (next [16]byte, err error)
	// EraseDecisions and EraseSignals erase the next rows and return how many they found.
	EraseDecisions(ctx context.Context, c *Claim, limit int) (found int, err error)
	EraseSignals(ctx context.Context, c *Claim, limit int) (found int, err error)
	// EraseAudits erases the audit of the whole connection, by pages. next is zero after the last page.
	EraseAudits(ctx context.Context, c *Claim, from [16]byte, limit int) (next [16]byte, err error)
	// EraseParked redacts parked records, by pages. next is zero after the last page.
	EraseParked(ctx context.Context, c *Claim, from int64, limit int) (next int64, err error)
	// Complete ends the requests that were not renewed with a later instant since, and returns how many.
	Complete(ctx context.Context, c *Claim) (completed int, err error)
	// Pending returns how many requests are not completed, and the age of the oldest.
	Pending(ctx context.Context) (n int, oldest time.Duration, err error)
}

// Queue is the queue to the engine; deliveries.Store implements it.
type Queue interface {
	HighWater(ctx context.Context, c ident.ConnectionID) (deliveries.HighWaterMark, error)
	RedactDead(ctx context.Context, r deliveries.Redaction, from deliveries.Cursor) (
		next deliveries.Cursor, more bool, err error)
	RedactWaiting(ctx context.Context, r deliveries.Redaction, from deliveries.Cursor) (
		next deliveries.Cursor, more bool, err error)
	RedactRemaining(ctx context.Context, r deliveries.Redaction, m deliveries.HighWaterMark) (
		[]deliveries.ActiveLease, error)
	AnyActive(ctx context.Context, c ident.ConnectionID, leases []deliveries.ActiveLease) (bool, error)
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
	pollInterval  = time.Second
	leaseInterval = 100 * time.Millisecond // between looks at active leases
	claimTTL      = 20 * time.Second
	maxPerClaim   = 100  // requests
	chunk         = 1000 // rows of a transaction
	parkedChunk   = 100
)

// errClaimLost says that another relay may have claimed the requests.
var errClaimLost = errors.New("the claim was lost")

// Eraser executes requests. Several may run at once.
type Eraser struct{ Config }

// New returns an Eraser.
func New(c Config) *Eraser { return &Eraser{c} }

// Run claims and executes requests until ctx ends.
func (e *Eraser) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		found, err := e.executeNext(ctx)
		if err != nil && ctx.Err() == nil {
			e.Metrics.failures.Inc()
			e.Logger.Error("an erasure failed, trying again", "error", err)
		}
		e.updateGauges(ctx)
		if !found || err != nil {
			_ = backoff.Sleep(ctx, pollInterval)
		}
	}
	return nil
}

// executeNext executes the next requests. It reports false when there are none.
func (e *Eraser) executeNext(ctx context.Context) (found bool, err error) {
	c, err := e.Store.Claim(ctx, e.RelayID, claimTTL, maxPerClaim)
	if err != nil || c == nil {
		return false, err
	}
	if err := e.execute(ctx, c); err != nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = e.Store.Release(ctx, c) // without it the claim expires
		return true, err
	}
	return true, nil
}

// execute does all steps. Each starts from its beginning when another relay ended in it.
func (e *Eraser) execute(ctx context.Context, c *Claim) error {
	if err := e.Store.WaitForRunningSinks(ctx); err != nil {
		return err
	}
	active, err := e.redactQueue(ctx, c)
	if err != nil {
		return err
	}
	steps := []func(context.Context, *Claim) error{e.orders, e.decisions, e.signals, e.audits, e.parked}
	for _, step := range steps {
		if err := step(ctx, c); err != nil {
			return err
		}
	}
	if err := e.awaitActiveLeases(ctx, c, active); err != nil {
		return err
	}
	n, err := e.Store.Complete(ctx, c)
	if err != nil {
		return err
	}
	e.Metrics.completed.Add(float64(n))
	e.Logger.Info("erasures completed", "connection_id", c.ConnectionID, "erasures", n)
	return nil
}

func (e *Eraser) updateGauges(ctx context.Context) {
	n, oldest, err := e.Store.Pending(ctx)
	if err != nil {
		return // the next Claim reports the same trouble
	}
	e.Metrics.pending.Set(float64(n))
	e.Metrics.oldest.Set(oldest.Seconds())
}

// renewClaim is called between two chunks.
func (e *Eraser) renewClaim(ctx context.Context, c *Claim) error {
	failpoint.Hit(failpoint.EraseChunk)
	held, err := e.Store.Renew(ctx, c, claimTTL)
	if err == nil && !held {
		err = errClaimLost
	}
	return err
}
