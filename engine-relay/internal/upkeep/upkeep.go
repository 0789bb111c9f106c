// Package upkeep owns the maintenance of the relay's tables: it creates partitions ahead of their day, drops
// old days when a retention is set, and flags foreign items that two concurrent transactions could not flag.
// A failure is counted, logged and tried again.
package upkeep

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"storefront.internal/shared/backoff"
)

// Store has the tables to maintain.
type Store interface {
	// EnsurePartitions creates the partitions of the coming days and returns how many whole days ahead every
	// table has.
	EnsurePartitions(ctx context.Context, days int) (int, error)
	// DropPartitions drops the days before the given one and returns how many tables it dropped.
	DropPartitions(ctx context.Context, before time.Time) (int, error)
	// DefaultPartitionRows counts rows that had no partition of their day.
	DefaultPartitionRows(ctx context.Context) (int, error)
	// Parked counts parked records.
	Parked(ctx context.Context) (int, error)
	// BackfillForeignItems flags the foreign items of signals whose Decision was stored at the same time, and
	// returns how many signals it flagged.
	BackfillForeignItems(ctx context.Context) (int, error)
}

// Config is what an Upkeep needs.
type Config struct {
	Store      Store
	Logger     *slog.Logger
	Registerer prometheus.Registerer
	DaysAhead  int           // days whose partitions are created ahead
	Retention  time.Duration // signals, audit and Decisions older than this are dropped; 0 keeps them
	Now        func() time.Time
}

const (
	partitionsEvery = time.Hour
	marksEvery      = 30 * time.Second
	retryAfter      = 5 * time.Second
)

// Upkeep maintains the tables of one Store.
type Upkeep struct {
	Config
	ahead                prometheus.Gauge
	defaultPartitionRows prometheus.Gauge
	parked               prometheus.Gauge
	dropped              prometheus.Counter
	failures             *prometheus.CounterVec
	ready                chan struct{}
	once                 sync.Once
	lastFailure          atomic.Pointer[error] // of creating partitions
}

// New returns an Upkeep.
func New(c Config) *Upkeep {
	if c.Now == nil {
		c.Now = time.Now
	}
	gauge := func(name, help string) prometheus.Gauge {
		return prometheus.NewGauge(prometheus.GaugeOpts{Name: "storefront_relay_" + name, Help: help})
	}
	u := &Upkeep{
		Config: c, ready: make(chan struct{}),
		ahead: gauge("partition_days_ahead", "Whole days ahead for which every table has a partition."),
		defaultPartitionRows: gauge("default_partition_rows",
			"Signals and audits without a partition of their day, up to 1,000 each. "+
				"An operator has to act above 0."),
		parked: gauge("parked_records",
			"Signals and unreadable records that could not be stored "+
				"and wait to be replayed or dropped, up to 10,000."),
		dropped: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "storefront_relay_partitions_dropped_total", Help: "Partitions that retention dropped.",
		}),
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "storefront_relay_upkeep_failures_total",
			Help: "Maintenance tasks that failed and are tried again: " +
				"partitions, retention, strays, marks, parked.",
		}, []string{"task"}),
	}
	c.Registerer.MustRegister(u.ahead, u.defaultPartitionRows, u.parked, u.dropped, u.failures)
	for _, task := range []string{"partitions", "retention", "strays", "marks", "parked"} {
		u.failures.WithLabelValues(task)
	}
	return u
}

// Ready is closed once the coming days have partitions; nothing should be stored before.
func (u *Upkeep) Ready() <-chan struct{} { return u.ready }

// Check is an error with its cause until Ready is closed.
func (u *Upkeep) Check(context.Context) error {
	select {
	case <-u.ready:
		return nil
	default:
	}
	if err := u.lastFailure.Load(); err != nil {
		return fmt.Errorf("the partitions of the coming days are missing: %w", *err)
	}
	return errors.New("the partitions of the coming days are not created yet")
}

// Run maintains the tables until ctx ends.
func (u *Upkeep) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	wg.Go(func() { u.repeat(ctx, partitionsEvery, u.partitions) })
	wg.Go(func() { u.repeat(ctx, marksEvery, u.foreignItems) })
	wg.Wait()
	return nil
}

// repeat runs a task at once and then at each interval, sooner after a failure.
func (u *Upkeep) repeat(ctx context.Context, interval time.Duration, task func(context.Context) bool) {
	for ctx.Err() == nil {
		wait := interval
		if !task(ctx) {
			wait = retryAfter
		}
		_ = backoff.Sleep(ctx, wait)
	}
}

func (u *Upkeep) partitions(ctx context.Context) bool {
	ahead, err := u.Store.EnsurePartitions(ctx, u.DaysAhead)
	if u.failed(ctx, "partitions", err) {
		u.lastFailure.Store(&err)
		return false
	}
	u.ahead.Set(float64(ahead))
	if ahead < u.DaysAhead {
		u.Logger.Error("the partition of a day cannot be created: its rows go to the default partition",
			"days_ahead", ahead)
	}
	u.once.Do(func() { close(u.ready) })

	strays, err := u.Store.DefaultPartitionRows(ctx)
	if u.failed(ctx, "strays", err) {
		return false
	}
	u.defaultPartitionRows.Set(float64(strays))
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

func (u *Upkeep) foreignItems(ctx context.Context) bool {
	marked, err := u.Store.BackfillForeignItems(ctx)
	if marked > 0 {
		u.Logger.Info("flagged foreign items of signals whose Decision was stored at the same time",
			"signals", marked)
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
