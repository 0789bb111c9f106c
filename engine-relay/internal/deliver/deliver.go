package deliver

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"storefront.internal/shared/backoff"
	"storefront.internal/shared/breaker"
	"storefront.internal/shared/deliveries"
	"storefront.internal/shared/heavyhitters"
	"storefront.internal/shared/service"
)

// Store is the queue as a worker needs it; deliveries.Store implements it.
type Store interface {
	Lease(ctx context.Context, q deliveries.LeaseQuery) ([]*deliveries.Lease, error)
	Complete(ctx context.Context, c deliveries.Completion) (deliveries.Completed, error)
	Block(ctx context.Context, r deliveries.Refusal) error
	Unblock(ctx context.Context, c deliveries.Credential) error
	AllowProbeAfter(ctx context.Context, c deliveries.Credential, after time.Duration) error
	Heartbeat(ctx context.Context, r deliveries.Relay) error
	MarkStopped(ctx context.Context, relayID string) error
	Compact(ctx context.Context) (deliveries.Compacted, error)
	RefreshLaneHeads(ctx context.Context, after time.Duration) (more bool, err error)
	ViewOf(ctx context.Context, k deliveries.Kind) (deliveries.View, error)
	CountLanes(ctx context.Context, k deliveries.Kind) (map[string]int64, error)
}

// Config wires a Worker. Zero durations and counts get the defaults named here.
type Config struct {
	Store      Store
	Engine     Engine // nil: no engine is configured, the worker is disabled
	RelayID    string // identifies this process among the relays
	Logger     *slog.Logger
	Registerer prometheus.Registerer // nil: no metrics
	Top        *heavyhitters.Tracker // of Loads by connection; nil: they are not counted
	// Traced starts the span of a request to the engine, given the W3C traceparents of the deliveries in it.
	// It returns the request's context and the function that ends the span. Nil traces nothing.
	Traced func(ctx context.Context, k deliveries.Kind, traceparents []string) (context.Context, func(error))

	Workers      int            // 4
	BatchLanes   int            // 200: lanes, and so connections, of one request
	BatchLimit   int            // 200, which is also the most that the engine accepts
	BatchBytes   int            // 1 MiB
	Timeout      time.Duration  // 10 s: the longest that Engine.Send takes
	Lease        time.Duration  // 60 s; raised to at least 2*Timeout + 5 s
	DecisionWait time.Duration  // 30 s
	DeadAttempts int            // 8
	DeadAfter    time.Duration  // 24 h
	Backoff      backoff.Policy // 1 s to 1 h, of a delivery in a retry lane
	LaneBackoff  backoff.Policy // 1 s to 15 s, of a lane and of the circuit breaker
	Poll         time.Duration  // 200 ms: how often one idle worker looks for a lane
	Compact      time.Duration  // 100 ms: how often deltas are folded without a nudge
	RefreshHeads time.Duration  // 1 s: how often oldest entries are looked up, of lanes that wait as long
	Heartbeat    time.Duration  // 3 s
	StopGrace    time.Duration  // 5 s: how long a request may go on after the stop
}

// Worker delivers.
type Worker struct {
	cfg             Config
	log             *slog.Logger
	replyLog        *replyLog
	metrics         *metrics
	breakers        map[deliveries.Kind]*breaker.Breaker
	guards          map[deliveries.Kind]*refusalGuard
	refusals        atomic.Int64 // answers 401 so far
	isolatedWorkers atomic.Int32 // workers that serve a retry lane
	nudge           chan struct{}
	wake            chan struct{}
}

// New returns a worker; Run runs it.
func New(cfg Config) *Worker {
	cfg = withDefaults(cfg)
	w := &Worker{
		cfg:      cfg,
		log:      cfg.Logger,
		replyLog: newReplyLog(cfg.Logger),
		breakers: make(map[deliveries.Kind]*breaker.Breaker),
		guards:   make(map[deliveries.Kind]*refusalGuard),
		nudge:    make(chan struct{}, 1),
		wake:     make(chan struct{}, cfg.Workers),
	}
	for _, k := range kinds() {
		w.guards[k] = &refusalGuard{}
		w.breakers[k] = breaker.New(breaker.Config{Failures: 3, Open: cfg.LaneBackoff})
	}
	w.metrics = newMetrics(cfg.Registerer, w)
	return w
}

func kinds() []deliveries.Kind {
	return []deliveries.Kind{deliveries.Interaction, deliveries.Envelope}
}

func withDefaults(c Config) Config {
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	c.Workers = cmp.Or(c.Workers, 4)
	c.BatchLanes = cmp.Or(c.BatchLanes, 200)
	c.BatchLimit = cmp.Or(c.BatchLimit, 200)
	c.BatchBytes = cmp.Or(c.BatchBytes, 1<<20)
	c.DeadAttempts = cmp.Or(c.DeadAttempts, 8)
	c.Timeout = cmp.Or(c.Timeout, 10*time.Second)
	c.Lease = max(cmp.Or(c.Lease, time.Minute), 2*c.Timeout+leaseMargin)
	c.DecisionWait = cmp.Or(c.DecisionWait, 30*time.Second)
	c.DeadAfter = cmp.Or(c.DeadAfter, 24*time.Hour)
	c.Backoff.Min = cmp.Or(c.Backoff.Min, time.Second)
	c.Backoff.Max = cmp.Or(c.Backoff.Max, time.Hour)
	c.LaneBackoff.Min = cmp.Or(c.LaneBackoff.Min, time.Second)
	c.LaneBackoff.Max = cmp.Or(c.LaneBackoff.Max, 15*time.Second)
	c.Poll = cmp.Or(c.Poll, 200*time.Millisecond)
	c.Compact = cmp.Or(c.Compact, 100*time.Millisecond)
	c.RefreshHeads = cmp.Or(c.RefreshHeads, time.Second)
	c.Heartbeat = cmp.Or(c.Heartbeat, 3*time.Second)
	c.StopGrace = cmp.Or(c.StopGrace, 5*time.Second)
	return c
}

// Nudge says that deliveries were enqueued and committed. It never blocks.
func (w *Worker) Nudge() {
	select {
	case w.nudge <- struct{}{}:
	default:
	}
}

// Run delivers until ctx ends. Then it gives requests under way a short grace, releases its lanes and marks
// the relay as stopped. Errors of the store are logged and retried; Run returns only after ctx ends.
func (w *Worker) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	wg.Go(func() { service.Every(ctx, w.cfg.Heartbeat, w.heartbeat) })
	wg.Go(func() { w.compact(ctx) })
	wg.Go(func() { service.Every(ctx, w.cfg.RefreshHeads, w.refreshHeads) })
	if w.cfg.Engine != nil {
		for range w.cfg.Workers {
			wg.Go(func() { w.work(ctx) })
		}
		wg.Go(func() { service.Every(ctx, w.cfg.Poll, func(context.Context) { w.wakeOne() }) })
	}
	wg.Wait()
	w.signOff(ctx)
	return nil
}

func (w *Worker) heartbeat(ctx context.Context) {
	relay := deliveries.Relay{ID: w.cfg.RelayID}
	if w.cfg.Engine != nil {
		relay.Configured, relay.Credential = true, w.cfg.Engine.Credential()
	}
	if err := w.cfg.Store.Heartbeat(ctx, relay); err != nil && ctx.Err() == nil {
		w.log.Error("heartbeat failed", "error", err)
	}
}

func (w *Worker) signOff(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	if err := w.cfg.Store.MarkStopped(ctx, w.cfg.RelayID); err != nil {
		w.log.Warn("the relay could not be marked as stopped", "error", err)
	}
}

// compact folds deltas after each nudge and at least every Config.Compact. It wakes a worker when lanes
// became ready.
func (w *Worker) compact(ctx context.Context) {
	for ctx.Err() == nil {
		done, err := w.cfg.Store.Compact(ctx)
		if err != nil {
			if ctx.Err() == nil {
				w.log.Error("deltas could not be folded", "error", err)
			}
			_ = backoff.Sleep(ctx, time.Second)
			continue
		}
		if done.Woken > 0 {
			w.wakeOne()
		}
		if !done.More() {
			sleepUntil(ctx, w.cfg.Compact, w.nudge)
		}
	}
}

// refreshHeads keeps the queue view from looking up the oldest entries itself.
func (w *Worker) refreshHeads(ctx context.Context) {
	for more := true; more && ctx.Err() == nil; {
		var err error
		if more, err = w.cfg.Store.RefreshLaneHeads(ctx, w.cfg.RefreshHeads); err != nil && ctx.Err() == nil {
			w.log.Error("the oldest entries of lanes could not be looked up", "error", err)
		}
	}
}

// wakeOne lets one idle worker look for a lane. One that finds something wakes the next.
func (w *Worker) wakeOne() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// idle returns when the worker is woken, or when ctx ends.
func (w *Worker) idle(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-w.wake:
	}
}

// sleepUntil returns after d, when wake gives a value, or when ctx ends.
func sleepUntil(ctx context.Context, d time.Duration, wake <-chan struct{}) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-wake:
	case <-timer.C:
	}
}
