// Package census owns the figures of control that lie in the store and not in a process: how many installations and loads are in which state, how long they stand, how many jobs wait, and for how many days there are partitions.
//
// Every process shows the same figures: a query takes the greatest. A figure that cannot be read is left out, and never shown as 0. The package refuses labels that grow with customers.
package census

import (
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Store is what is counted.
type Store interface {
	Census(ctx context.Context) (Figures, error)
}

// Figures are one reading.
type Figures struct {
	Installations      map[string]int // by state
	OldestInstallation time.Duration  // since the oldest one that is neither completed nor failed was opened
	Loads              map[string]int // bootstrap runs, queued and running
	StillestLoad       time.Duration  // since the one that stands still longest saved anything
	Privacy            map[string]int // privacy requests that are not completed, by kind
	OldestPrivacy      time.Duration  // since the oldest of them arrived
	Jobs               map[Job]int    // those that are not done, and those that were given up
	DaysAhead          int            // whole days ahead for which every table has its partition
}

// Job is a kind of waiting.
type Job struct{ Queue, State string }

// every is how old the figures may be; a reading is bounded by it.
const every = 15 * time.Second

// Census shows the figures.
type Census struct {
	store  Store
	logger *slog.Logger

	installations, loads, jobs, privacy    *prometheus.GaugeVec
	oldest, stillest, ahead, oldestPrivacy *prometheus.GaugeVec // without labels, so that they can be left out
	up                                     prometheus.Gauge
}

// New returns a Census whose figures are registered; Run fills them.
func New(store Store, logger *slog.Logger, r prometheus.Registerer) *Census {
	gauge := func(name, help string, labels ...string) *prometheus.GaugeVec {
		v := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "storefront_control_" + name, Help: help}, labels)
		r.MustRegister(v)
		return v
	}
	c := &Census{store: store, logger: logger,
		installations: gauge("installations", "Installations by state.", "state"),
		oldest: gauge("oldest_installation_seconds",
			"Age of the oldest installation that is neither completed nor failed; 0 when there is none."),
		loads: gauge("bootstrap_runs", "Bootstrap runs that are queued or running, by state.", "state"),
		stillest: gauge("bootstrap_standstill_seconds",
			"Time since the bootstrap run that stands still longest saved anything; 0 when none runs."),
		privacy: gauge("privacy_requests",
			"Requests of providers about people's data that are not completed, by kind (redact_customer, redact_store, data_request: an operator's task).", "kind"),
		oldestPrivacy: gauge("oldest_privacy_request_seconds",
			"Age of the oldest request about people's data that is not completed; 0 when there is none."),
		jobs: gauge("jobs", "Jobs that are not done, and those that were given up (discarded), by queue and state.", "queue", "state"),
		ahead: gauge("partition_days_ahead",
			"Whole days ahead for which the archive and the notifications have their partitions."),
		up: prometheus.NewGauge(prometheus.GaugeOpts{Name: "storefront_control_census_up",
			Help: "1 while the figures of the store can be read; at 0 they are left out."}),
	}
	r.MustRegister(c.up)
	return c
}

// Run keeps the figures until the context ends.
func (c *Census) Run(ctx context.Context) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		c.take(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

func (c *Census) take(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, every)
	defer cancel()
	f, err := c.store.Census(ctx)
	for _, v := range []*prometheus.GaugeVec{c.installations, c.oldest, c.loads, c.stillest, c.jobs, c.ahead, c.privacy, c.oldestPrivacy} {
		v.Reset()
	}
	if err != nil {
		c.up.Set(0)
		if ctx.Err() == nil {
			c.logger.Warn("the census cannot be taken", "error", err.Error())
		}
		return
	}
	for state, n := range f.Installations {
		c.installations.WithLabelValues(state).Set(float64(n))
	}
	for state, n := range f.Loads {
		c.loads.WithLabelValues(state).Set(float64(n))
	}
	for kind, n := range f.Privacy {
		c.privacy.WithLabelValues(kind).Set(float64(n))
	}
	c.oldestPrivacy.WithLabelValues().Set(f.OldestPrivacy.Seconds())
	for job, n := range f.Jobs {
		c.jobs.WithLabelValues(job.Queue, job.State).Set(float64(n))
	}
	c.oldest.WithLabelValues().Set(f.OldestInstallation.Seconds())
	c.stillest.WithLabelValues().Set(f.StillestLoad.Seconds())
	c.ahead.WithLabelValues().Set(float64(f.DaysAhead))
	c.up.Set(1)
}
