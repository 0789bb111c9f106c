package kafka

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"storefront.internal/edge/internal/recommend"
	"storefront.internal/shared/signal"
	"storefront.internal/shared/stream"
)

// Producer hands a record to Kafka.
type Producer interface {
	Produce(ctx context.Context, value []byte) (stream.Outcome, error)
}

// The bounds of what is under way, and the pauses between attempts.
const (
	maxUnderWay    = 2048
	produceTimeout = 10 * time.Second
	firstPause     = 50 * time.Millisecond
	longestPause   = time.Second
)

// Decisions implements recommend.Recorder. It waits for nobody: what Kafka does not take in time, or what is more than
// may be under way, is counted and let go. What Kafka refuses is tried again meanwhile, and so is what may have arrived: a
// Decision is stored once. One that is not recorded costs its signals their engine ids, no more.
type Decisions struct {
	producer Producer
	log      *slog.Logger
	room     chan struct{}
	outcomes *prometheus.CounterVec
	ctx      context.Context // ends when Close gives up
	giveUp   context.CancelFunc
	closing  chan struct{} // closed when Close begins: nothing is tried again

	mu     sync.Mutex
	closed bool
	work   sync.WaitGroup
}

var _ recommend.Recorder = (*Decisions)(nil)

// NewDecisions returns a recorder. Close it after the last Record.
func NewDecisions(p Producer, log *slog.Logger, r prometheus.Registerer) *Decisions {
	d := &Decisions{producer: p, log: log, room: make(chan struct{}, maxUnderWay), closing: make(chan struct{}),
		outcomes: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "storefront_edge_decisions_recorded_total",
			Help: "Served Decisions on their way into Kafka, by outcome: acknowledged, refused, unknown, dropped (too many under way)."},
			[]string{"outcome"})}
	r.MustRegister(d.outcomes)
	d.ctx, d.giveUp = context.WithCancel(context.Background())
	return d
}

// Record implements recommend.Recorder.
func (d *Decisions) Record(decision *signal.Decision) {
	d.mu.Lock()
	defer d.mu.Unlock()
	select {
	case d.room <- struct{}{}:
	default:
		d.outcomes.WithLabelValues("dropped").Inc()
		return
	}
	if d.closed {
		<-d.room
		d.outcomes.WithLabelValues("dropped").Inc()
		return
	}
	value := signal.AppendDecision(nil, decision)
	d.work.Go(func() {
		defer func() { <-d.room }()
		d.produce(value)
	})
}

func (d *Decisions) produce(value []byte) {
	ctx, cancel := context.WithTimeout(d.ctx, produceTimeout)
	defer cancel()
	outcome, err := d.producer.Produce(ctx, value)
	for pause := firstPause; err != nil && d.rest(ctx, pause); pause = min(2*pause, longestPause) {
		outcome, err = d.producer.Produce(ctx, value)
	}
	d.outcomes.WithLabelValues(outcome.String()).Inc()
	if err != nil {
		d.log.Warn("decision not recorded", slog.String("outcome", outcome.String()), slog.Any("error", err))
	}
}

// rest waits before another attempt. It reports false when there shall be none.
func (d *Decisions) rest(ctx context.Context, pause time.Duration) bool {
	t := time.NewTimer(pause)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-d.closing:
	case <-t.C:
		return true
	}
	return false
}

// Close takes no more Decisions, tries none again, and waits for those under way, until ctx ends.
func (d *Decisions) Close(ctx context.Context) error {
	d.mu.Lock()
	if !d.closed {
		d.closed = true
		close(d.closing)
	}
	d.mu.Unlock()
	done := make(chan struct{})
	go func() {
		d.work.Wait()
		close(done)
	}()
	select {
	case <-done:
		d.giveUp()
		return nil
	case <-ctx.Done():
		d.giveUp()
		<-done // Produce obeys its context
		return ctx.Err()
	}
}
