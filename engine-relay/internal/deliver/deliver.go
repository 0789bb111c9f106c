package deliver

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"storefront.internal/shared/deliveries"
)

// Store is the queue as a worker needs it; deliveries.Store is it.
type Store interface {
	Take(ctx context.Context, q deliveries.TakeQuery) (*deliveries.Lease, error)
	Settle(ctx context.Context, l *deliveries.Lease, s deliveries.Settlement) (deliveries.Settled, error)
	Block(ctx context.Context, r deliveries.Refusal) error
	Unblock(ctx context.Context, c deliveries.Credential) error
	Reprobe(ctx context.Context, c deliveries.Credential, after time.Duration) error
	Heartbeat(ctx context.Context, r deliveries.Relay) error
	Stopped(ctx context.Context, relayID string) error
	Compact(ctx context.Context) (deliveries.Compacted, error)
	DateLanes(ctx context.Context) (more bool, err error)
	ViewOf(ctx context.Context, k deliveries.Kind) (deliveries.View, error)
}

// Config wires a Worker. Zero durations and counts get the defaults named here.
type Config struct {
	Store      Store
	Engine     Engine // nil: none is configured, the worker is disabled
	RelayID    string // this process; unique among the relays
	Logger     *slog.Logger
	Registerer prometheus.Registerer // nil: no metrics
	// Traced is told that a request to the engine begins, with the W3C traceparents of what it delivers. It returns the context
	// of the request, and what is to be told its end; nil: nothing is traced.
	Traced func(ctx context.Context, kind deliveries.Kind, traceparents []string) (context.Context, func(error))

	Workers      int           // 4
	BatchLimit   int           // 200, the contract's most
	BatchBytes   int           // 1 MiB
	Timeout      time.Duration // 10 s: how long Engine.Send may take, at the most
	Lease        time.Duration // 60 s; never below twice Timeout and 5 s
	DecisionWait time.Duration // 30 s
	DeadAttempts int           // 8
	DeadAfter    time.Duration // 24 h
	Backoff      Backoff       // 1 s to 1 h, of a delivery that is tried alone
	LaneBackoff  Backoff       // 1 s to 15 s, of a lane and of the breaker
	Poll         time.Duration // 200 ms: how often an idle worker looks
	Compact      time.Duration // 100 ms: how often deltas are folded without a nudge
	Date         time.Duration // 1 s: how often lanes that wait for a turn are dated
	Heartbeat    time.Duration // 3 s
	StopGrace    time.Duration // 5 s: how long a request may go on after the stop
}

// Worker delivers.
type Worker struct {
	cfg      Config
	log      *slog.Logger
	metrics  *metrics
	breakers map[deliveries.Kind]*breaker
	refusals atomic.Int64 // 401s that came
	alone    atomic.Int32 // workers on deliveries that are tried alone
	nudge    chan struct{}
	wake     chan struct{}
}

// New returns a worker; Run runs it.
func New(cfg Config) *Worker {
	cfg = withDefaults(cfg)
	w := &Worker{
		cfg:      cfg,
		log:      cfg.Logger,
		breakers: make(map[deliveries.Kind]*breaker),
		nudge:    make(chan struct{}, 1),
		wake:     make(chan struct{}, cfg.Workers),
	}
	for _, k := range kinds() {
		w.breakers[k] = &breaker{threshold: 3, backoff: cfg.LaneBackoff, jitter: rand.Float64}
	}
	w.metrics = newMetrics(cfg.Registerer, w)
	return w
}

func kinds() []deliveries.Kind {
	return []deliveries.Kind{deliveries.Interaction, deliveries.Envelope}
}

func withDefaults(c Config) Config {
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	orInt(&c.Workers, 4)
	orInt(&c.BatchLimit, 200)
	orInt(&c.BatchBytes, 1<<20)
	orInt(&c.DeadAttempts, 8)
	orTime(&c.Timeout, 10*time.Second)
	orTime(&c.Lease, time.Minute)
	orTime(&c.DecisionWait, 30*time.Second)
	orTime(&c.DeadAfter, 24*time.Hour)
	orTime(&c.Backoff.Min, time.Second)
	orTime(&c.Backoff.Max, time.Hour)
	orTime(&c.LaneBackoff.Min, time.Second)
	orTime(&c.LaneBackoff.Max, 15*time.Second)
	orTime(&c.Poll, 200*time.Millisecond)
	orTime(&c.Compact, 100*time.Millisecond)
	orTime(&c.Date, time.Second)
	orTime(&c.Heartbeat, 3*time.Second)
	orTime(&c.StopGrace, 5*time.Second)
	c.Lease = max(c.Lease, 2*c.Timeout+leaseMargin)
	return c
}

func orInt(v *int, d int) {
	if *v == 0 {
		*v = d
	}
}

func orTime(v *time.Duration, d time.Duration) {
	if *v == 0 {
		*v = d
	}
}

// Nudge says that deliveries were enqueued and committed. It never waits.
func (w *Worker) Nudge() {
	select {
	case w.nudge <- struct{}{}:
	default:
	}
}

// Run delivers until ctx ends; then it lets requests under way finish for a short while, gives its lanes back and
// signs off. Failures of the store are logged and tried again: it returns only when it is told to.
func (w *Worker) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	wg.Go(func() { w.beat(ctx) })
	wg.Go(func() { w.compact(ctx) })
	wg.Go(func() { w.date(ctx) })
	if w.cfg.Engine != nil {
		for range w.cfg.Workers {
			wg.Go(func() { w.work(ctx) })
		}
	}
	wg.Wait()
	w.signOff(ctx)
	return nil
}

// beat says that the relay is there.
func (w *Worker) beat(ctx context.Context) {
	relay := deliveries.Relay{ID: w.cfg.RelayID}
	if w.cfg.Engine != nil {
		relay.Configured, relay.Credential = true, w.cfg.Engine.Credential()
	}
	for {
		if err := w.cfg.Store.Heartbeat(ctx, relay); err != nil && ctx.Err() == nil {
			w.log.Error("the relay could not say that it is there", "error", err)
		}
		if !sleep(ctx, w.cfg.Heartbeat, nil) {
			return
		}
	}
}

func (w *Worker) signOff(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	if err := w.cfg.Store.Stopped(ctx, w.cfg.RelayID); err != nil {
		w.log.Warn("the relay could not sign off", "error", err)
	}
}

// compact folds deltas, at each nudge and now and then, and wakes workers when it woke lanes.
func (w *Worker) compact(ctx context.Context) {
	for {
		done, err := w.cfg.Store.Compact(ctx)
		switch {
		case err != nil && ctx.Err() == nil:
			w.log.Error("deltas could not be folded", "error", err)
			if !sleep(ctx, time.Second, nil) {
				return
			}
			continue
		case done.Woken > 0:
			w.wakeAll()
		}
		if !done.More() && !sleep(ctx, w.cfg.Compact, w.nudge) || ctx.Err() != nil {
			return
		}
	}
}

// date keeps the queue's view from having to look up what waits.
func (w *Worker) date(ctx context.Context) {
	for {
		more, err := w.cfg.Store.DateLanes(ctx)
		if err != nil && ctx.Err() == nil {
			w.log.Error("lanes could not be dated", "error", err)
		}
		if !more && !sleep(ctx, w.cfg.Date, nil) || ctx.Err() != nil {
			return
		}
	}
}

func (w *Worker) wakeAll() {
	for range w.cfg.Workers {
		select {
		case w.wake <- struct{}{}:
		default:
			return
		}
	}
}

// sleep waits for the time or the early channel; it reports false when ctx ended.
func sleep(ctx context.Context, d time.Duration, early <-chan struct{}) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-early:
	case <-t.C:
	}
	return ctx.Err() == nil
}
