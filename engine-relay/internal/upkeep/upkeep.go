// Package upkeep owns what the relay's tables need besides being written: partitions made ahead of their day, old days
// dropped when a retention is set, and marks that two concurrent transactions could not set. It refuses to stop for a
// failure: each is counted, logged and tried again.
package upkeep

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Store is what is kept up.
type Store interface {
	// EnsurePartitions makes the coming days and returns how many whole days ahead there are.
	EnsurePartitions(ctx context.Context, days int) (int, error)
	// DropPartitions ends the days before the given one and returns how many tables went.
	DropPartitions(ctx context.Context, before time.Time) (int, error)
	// Strays counts rows that found no day's partition.
	Strays(ctx context.Context) (int, error)
	// Parked counts what could not be stored and lies parked.
	Parked(ctx context.Context) (int, error)
	// MarkMissed sets marks that are missing though their Decision is there, and returns how many.
	MarkMissed(ctx context.Context) (int, error)
}

// Config is what an Upkeep needs.
type Config struct {
	Store      Store
	Logger     *slog.Logger
	Registerer prometheus.Registerer
	DaysAhead  int           // how many days' partitions are kept ready
	Retention  time.Duration // signals, audit and Decisions older than this go; 0 keeps them for ever
	Now        func() time.Time
}

// How often things are done, and tried again when they fail.
const (
	partitionsEvery = time.Hour
	marksEvery      = 30 * time.Second
	retryAfter      = 5 * time.Second
)

// Upkeep runs until it is told to stop.
type Upkeep struct {
	Config
	ahead    prometheus.Gauge
	strays   prometheus.Gauge
	parked   prometheus.Gauge
	dropped  prometheus.Counter
	failures *prometheus.CounterVec
	ready    chan struct{}
	once     sync.Once
}

// New returns an Upkeep.
func New(c Config) *Upkeep {
	if c.Now == nil {
		c.Now = time.Now
	}
	u := &Upkeep{Config: c, ready: make(chan struct{}),
		ahead: prometheus.NewGauge(prometheus.GaugeOpts{Name: "storefront_relay_partition_days_ahead",
			Help: "Whole days ahead for which every table has its partition."}),
		strays: prometheus.NewGauge(prometheus.GaugeOpts{Name: "storefront_relay_default_partition_rows",
			Help: "Signals and audits that found no day's partition, up to 1,000 each. More than 0 wants an operator."}),
		parked: prometheus.NewGauge(prometheus.GaugeOpts{Name: "storefront_relay_parked_records",
			Help: "Signals, and records that cannot be read, that could not be stored and lie parked with their bytes, up to 10,000."}),
		dropped: prometheus.NewCounter(prometheus.CounterOpts{Name: "storefront_relay_partitions_dropped_total",
			Help: "Partitions that retention dropped."}),
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "storefront_relay_upkeep_failures_total",
			Help: "Upkeep that failed and is tried again, by task: partitions, retention, strays, marks, parked."}, []string{"task"}),
	}
	c.Registerer.MustRegister(u.ahead, u.strays, u.parked, u.dropped, u.failures)
	return u
}

// Ready is closed once the coming days have their partitions: nothing should be stored before.
func (u *Upkeep) Ready() <-chan struct{} { return u.ready }

// Run keeps up until ctx ends.
func (u *Upkeep) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	wg.Go(func() { u.repeat(ctx, partitionsEvery, u.partitions) })
	wg.Go(func() { u.repeat(ctx, marksEvery, u.marks) })
	wg.Wait()
	return nil
}

// repeat does the work at once and then every so often, sooner after a failure.
func (u *Upkeep) repeat(ctx context.Context, every time.Duration, do func(context.Context) bool) {
	for {
		wait := every
		if !do(ctx) {
			wait = retryAfter
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
	}
}

func (u *Upkeep) partitions(ctx context.Context) bool {
	ahead, err := u.Store.EnsurePartitions(ctx, u.DaysAhead)
	if u.failed(ctx, "partitions", err) {
		return false
	}
	u.ahead.Set(float64(ahead))
	if ahead < u.DaysAhead {
		u.Logger.Error("a day's partition cannot be made: its rows lie in the default partition", "days_ahead", ahead)
	}
	u.once.Do(func() { close(u.ready) })

	strays, err := u.Store.Strays(ctx)
	if u.failed(ctx, "strays", err) {
		return false
	}
	u.strays.Set(float64(strays))
	if u.Retention <= 0 {
		return true
	}
	dropped, err := u.Store.DropPartitions(ctx, u.Now().Add(-u.Retention))
	if u.failed(ctx, "retention", err) {
		return false
	}
	u.dropped.Add(float64(dropped))
	return true
}

func (u *Upkeep) marks(ctx context.Context) bool {
	marked, err := u.Store.MarkMissed(ctx)
	if marked > 0 {
		u.Logger.Info("marked signals whose Decision was stored beside them", "signals", marked)
	}
	if u.failed(ctx, "marks", err) {
		return false
	}
	parked, err := u.Store.Parked(ctx)
	if u.failed(ctx, "parked", err) {
		return false
	}
	u.parked.Set(float64(parked))
	return true
}

func (u *Upkeep) failed(ctx context.Context, task string, err error) bool {
	if err == nil || ctx.Err() != nil {
		return err != nil
	}
	u.failures.WithLabelValues(task).Inc()
	u.Logger.Error("upkeep failed, trying again", "task", task, "error", err)
	return true
}
