package kafka

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"storefront.internal/edge/internal/recommend"
	"storefront.internal/shared/backoff"
	"storefront.internal/shared/signal"
	"storefront.internal/shared/stream"
	"storefront.internal/shared/telemetry"
)

// Producer hands a record to Kafka.
type Producer interface {
	Produce(ctx context.Context, value []byte) (stream.Outcome, error)
}

const (
	maxInFlight    = 2048 // Decisions; more are dropped
	produceTimeout = 10 * time.Second
)

// Decisions implements recommend.Recorder. It produces in the background. A Decision that Kafka does not
// acknowledge is produced again, which is right even when it was stored: the relay stores each Decision once.
// One that is not acknowledged in time is counted and dropped; then its signals only lack the engine's ids.
type Decisions struct {
	producer Producer
	log      *slog.Logger
	logs     *telemetry.Throttle[stream.Outcome]
	inFlight chan struct{} // a semaphore
	outcomes *prometheus.CounterVec
	ctx      context.Context // ends when Close gives up
	cancel   context.CancelFunc
	retry    context.Context // ends when Close begins: there are no further attempts
	noRetry  context.CancelFunc

	mu   sync.Mutex // of starting work and of ending the retries
	work sync.WaitGroup
}

var _ recommend.Recorder = (*Decisions)(nil)

// NewDecisions returns a recorder. Close it after the last Record.
func NewDecisions(p Producer, log *slog.Logger, r prometheus.Registerer) *Decisions {
	d := &Decisions{producer: p, log: log, inFlight: make(chan struct{}, maxInFlight),
		logs: telemetry.NewThrottle[stream.Outcome](time.Second, 1),
		outcomes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "storefront_edge_decisions_recorded_total",
			Help: "Served Decisions sent to Kafka, by outcome: acknowledged, refused, unknown, dropped " +
				"(too many in flight)."},
			[]string{"outcome"})}
	r.MustRegister(d.outcomes)
	for _, outcome := range []string{"acknowledged", "refused", "unknown", "dropped"} {
		d.outcomes.WithLabelValues(outcome)
	}
	d.ctx, d.cancel = context.WithCancel(context.Background())
	d.retry, d.noRetry = context.WithCancel(d.ctx)
	return d
}

// Record implements recommend.Recorder.
func (d *Decisions) Record(decision *signal.Decision) {
	value := signal.AppendDecision(nil, decision)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.retry.Err() != nil || !d.acquire() {
		d.outcomes.WithLabelValues("dropped").Inc()
		return
	}
	d.work.Go(func() {
		defer func() { <-d.inFlight }()
		d.produce(value)
	})
}

func (d *Decisions) acquire() bool {
	select {
	case d.inFlight <- struct{}{}:
		return true
	default:
		return false
	}
}

func (d *Decisions) produce(value []byte) {
	ctx, cancel := context.WithTimeout(d.ctx, produceTimeout)
	defer cancel()
	retry, stop := context.WithTimeout(d.retry, produceTimeout)
	defer stop()
	pauses := backoff.Policy{Min: 50 * time.Millisecond, Max: time.Second}
	outcome, err := d.producer.Produce(ctx, value)
	for attempt := 1; err != nil && backoff.Sleep(retry, pauses.Delay(attempt)) == nil; attempt++ {
		outcome, err = d.producer.Produce(ctx, value)
	}
	d.outcomes.WithLabelValues(outcome.String()).Inc()
	if err != nil {
		d.logs.Log(d.log, slog.LevelWarn, outcome, "Decision not recorded",
			slog.String("outcome", outcome.String()), slog.Any("error", err))
	}
}

// Close drops further Decisions, ends the retries, and waits until ctx ends for those in flight.
func (d *Decisions) Close(ctx context.Context) error {
	defer d.cancel()
	d.mu.Lock()
	d.noRetry()
	d.mu.Unlock()
	done := make(chan struct{})
	go func() {
		d.work.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		d.cancel()
		<-done // Produce ends with its context
		return ctx.Err()
	}
}
