// Package upkeep owns the maintenance of the relay's tables: it creates partitions ahead of their day, drops
// what is older than its retention, and flags foreign items that two concurrent transactions could not flag.
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
	// DropPartition drops the oldest day of the table if it is before the given one, and says whether it was.
	// It fails, and is to be repeated, while a long transaction reads the day.
	DropPartition(ctx context.Context, t Table, before time.Time) (bool, error)
	// PurgeCartLines deletes the lines of a page of the table that last changed before the given instant. It
	// returns the next page, 0 after the last one.
	PurgeCartLines(ctx context.Context, before time.Time, page int64) (deleted int, next int64, err error)
	// DefaultPartitionRows counts rows that had no partition of their day.
	DefaultPartitionRows(ctx context.Context) (int, error)
	// Parked counts parked records.
	Parked(ctx context.Context) (int, error)
	// BackfillForeignItems flags the foreign items of signals whose Decision was stored at the same time, and
	// returns how many signals it flagged.
	BackfillForeignItems(ctx context.Context) (int, error)
}

// Table is a table with a partition for each day.
type Table string

// The tables.
const (
	Signals   Table = "signals"
	Audit     Table = "audit"
	Decisions Table = "decisions"
)

// Config is what an Upkeep needs.
type Config struct {
	Store      Store
	Logger     *slog.Logger
	Registerer prometheus.Registerer
	DaysAhead  int // days whose partitions are created ahead
	// Signals, Decisions and cart lines older than Retention are dropped, and so is the audit that is older
	// than AuditRetention; 0 keeps them.
	Retention, AuditRetention time.Duration
	Now                       func() time.Time
}

const (
	partitionsEvery = time.Hour
	retentionEvery  = time.Hour
	linesEvery      = 24 * time.Hour
	marksEvery      = 30 * time.Second
	retryAfter      = 5 * time.Second

	// A day that cannot be dropped is in use. Each attempt may hold up the sink for a moment.
	retentionRetryAfter = time.Minute
	// linesPause is the time between two pages of cart lines, so that the purge takes a small part of the
	// disk's time.
	linesPause = 200 * time.Millisecond
)

// Upkeep maintains the tables of one Store.
type Upkeep struct {
	Config
	ahead                prometheus.Gauge
	defaultPartitionRows prometheus.Gauge
	parked               prometheus.Gauge
	dropped              prometheus.Counter
	purgedLines          prometheus.Counter
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
		purgedLines: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "storefront_relay_cart_lines_purged_total",
			Help: "Cart lines that retention deleted.",
		}),
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "storefront_relay_upkeep_failures_total",
			Help: "Maintenance tasks that failed and are tried again: partitions, retention (a day that is " +
				"to be dropped is in use), lines, strays, marks, parked.",
		}, []string{"task"}),
	}
	c.Registerer.MustRegister(u.ahead, u.defaultPartitionRows, u.parked, u.dropped, u.purgedLines, u.failures)
	for _, task := range []string{"partitions", "retention", "lines", "strays", "marks", "parked"} {
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
	wg.Go(func() { repeat(ctx, partitionsEvery, retryAfter, u.partitions) })
	wg.Go(func() { repeat(ctx, marksEvery, retryAfter, u.foreignItems) })
	if u.Retention > 0 || u.AuditRetention > 0 {
		wg.Go(func() { repeat(ctx, retentionEvery, retentionRetryAfter, u.dropDays) })
	}
	if u.Retention > 0 {
		wg.Go(func() { repeat(ctx, linesEvery, retentionRetryAfter, u.purgeLines) })
	}
	wg.Wait()
	return nil
}

// repeat runs a task at once and then at each interval, and after a failure when the shorter time has passed.
func repeat(ctx context.Context, interval, afterFailure time.Duration, task func(context.Context) bool) {
	for ctx.Err() == nil {
		wait := interval
		if !task(ctx) {
			wait = afterFailure
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
	return true
}

// dropDays drops the old days of each table, also when a day of another one cannot be dropped now.
func (u *Upkeep) dropDays(ctx context.Context) bool {
	done := true
	for t, retention := range map[Table]time.Duration{
		Signals: u.Retention, Decisions: u.Retention, Audit: u.AuditRetention,
	} {
		for dropped := retention > 0; dropped; {
			var err error
			dropped, err = u.Store.DropPartition(ctx, t, u.Now().Add(-retention))
			if u.failed(ctx, "retention", err) {
				done = false
			}
			if dropped {
				u.dropped.Inc()
			}
		}
	}
	return done
}

// purgeLines looks at every cart line once, page by page.
func (u *Upkeep) purgeLines(ctx context.Context) bool {
	for page := int64(0); ; {
		deleted, next, err := u.Store.PurgeCartLines(ctx, u.Now().Add(-u.Retention), page)
		if u.failed(ctx, "lines", err) {
			return false
		}
		u.purgedLines.Add(float64(deleted))
		if next == 0 || backoff.Sleep(ctx, linesPause) != nil {
			return true
		}
		page = next
	}
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
