// Package stats owns the metrics of what is stored, in contrast to what a process did: installations,
// bootstrap runs and jobs by state, how long they wait, silent shops, the quarantine, the partitions that
// exist in advance, and the sizes of tables.
//
// Every process reads and shows the same figures, so a query takes their maximum. Figures that cannot be read
// are left out and never shown as 0.
package stats

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"storefront.internal/shared/service"
)

// Store reads the figures.
type Store interface {
	Figures(ctx context.Context, l Limits) (Figures, error)
	Sizes(ctx context.Context) (Sizes, error)
}

// Limits say which shops the figures count.
type Limits struct {
	Silent time.Duration // without a webhook, until a shop counts as silent
	Late   time.Duration // without a catch-up or a bootstrap run, until a shop counts as late
}

// Figures are one reading.
type Figures struct {
	Installations      map[string]int // by state
	OldestInstallation time.Duration  // age of the oldest one that is neither completed nor failed
	Bootstraps         map[string]int // bootstrap runs, queued and running
	StalestBootstrap   time.Duration  // since the unfinished run with the oldest progress saved it
	Privacy            map[string]int // privacy requests that are not completed, by kind
	OldestPrivacy      time.Duration  // age of the oldest of them
	Disabled           map[string]int // disabled connections, by who disabled them
	Refused            int            // connections whose credential the provider refuses
	Jobs               map[Job]int    // unfinished and discarded ones
	DaysAhead          int            // whole days ahead for which every table has its partition
	Silence            map[string]Silence
	Late               map[string]int // late shops, by provider
	Quarantined        int            // up to 10,000
	DefaultRows        int            // rows in default partitions, up to 1,000 for each table
	PushLag            time.Duration  // age of the oldest unfinished push of items
}

// Job is a queue and a state of its jobs.
type Job struct{ Queue, State string }

// Silence is how quiet the installed shops of a provider are.
type Silence struct {
	Longest time.Duration // since the last webhook of the most silent shop
	Shops   int           // silent ones
}

// interval is the time between two readings, and bounds one reading.
const interval = 15 * time.Second

// Config is what a Collector is made of.
type Config struct {
	Store     Store
	Providers []string // those whose silent and late shops are shown
	Limits    Limits
	Logger    *slog.Logger
}

// Collector keeps the metrics up to date.
type Collector struct {
	cfg Config

	installations, oldestInstallation, bootstraps, stalestBootstrap, privacy, oldestPrivacy, jobs, partitions,
	silence, silent, late, quarantine, defaultRows, pushLag, disabled, refused *prometheus.GaugeVec
	all   gauges
	up    prometheus.Gauge
	sizes *sizes
}

// New returns a Collector whose metrics are registered; Run fills them.
func New(cfg Config, r prometheus.Registerer) *Collector {
	c := &Collector{cfg: cfg, sizes: newSizes(r), all: gauges{registerer: r, prefix: "storefront_control_"}}
	vec := c.all.add
	c.installations = vec("installations", "Installations by state.", "state")
	c.oldestInstallation = vec("oldest_installation_seconds",
		"Age of the oldest installation that is neither completed nor failed; 0 without one.")
	c.bootstraps = vec("bootstrap_runs", "Bootstrap runs that are queued or running, by state.", "state")
	c.stalestBootstrap = vec("bootstrap_standstill_seconds",
		"Time since the unfinished bootstrap run with the oldest progress saved it; 0 without an "+
			"unfinished run.")
	c.privacy = vec("privacy_requests",
		"Requests of providers about personal data that are not completed, by kind "+
			"(redact_customer, redact_store, data_request: an operator's task, as is a redact_customer that "+
			"`control privacy list` shows as held).", "kind")
	c.oldestPrivacy = vec("oldest_privacy_request_seconds",
		"Age of the oldest request about personal data that is not completed; 0 without one.")
	c.jobs = vec("jobs", "Jobs that are not finished, and discarded ones, by queue and state.", "queue",
		"state")
	c.partitions = vec("partition_days_ahead",
		"Whole days ahead for which the archive and the webhook events have their partitions.")
	c.silence = vec("shop_silence_seconds",
		"Time since the last webhook of the most silent installed shop, by provider; "+
			"since its installation when it never sent one. 0 without shops.", "provider")
	c.silent = vec("silent_shops",
		"Installed shops that have sent no webhook for longer than CONTROL_SILENT_AFTER, by "+
			"provider. Many at once mean that the provider, or its way to deliver_webhook, is down.",
		"provider")
	c.late = vec("late_shops",
		"Installed shops whose last catch-up or bootstrap run began longer ago than four times "+
			"CONTROL_CATCH_UP_EVERY, by provider. Many mean that control does not keep up, or that the "+
			"provider fails.", "provider")
	c.quarantine = vec("quarantine_size", "Observations in the quarantine, up to 10,000.")
	c.defaultRows = vec("default_partition_rows",
		"Observations and webhook events in default partitions, up to 1,000 each. "+
			"Above 0, the partition of a day was missing: an operator moves the rows.")
	c.pushLag = vec("item_push_lag_seconds", "Age of the oldest unfinished push of items to Redis.")
	c.disabled = vec("connections_disabled",
		"Connections that are disabled, by who did it: an operator, or Storefront itself because their "+
			"jobs ended the process again and again (crashes).", "by")
	c.refused = vec("credentials_refused",
		"Active connections whose credential the provider refuses, though it told of no uninstallation.")
	c.up = prometheus.NewGauge(prometheus.GaugeOpts{Name: "storefront_control_census_up",
		Help: "1 while the figures can be read from PostgreSQL; at 0 they are left out."})
	r.MustRegister(c.up)
	return c
}

// Run keeps the metrics up to date until the context ends.
func (c *Collector) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	wg.Go(func() { service.Every(ctx, interval, c.Collect) })
	wg.Go(func() { service.Every(ctx, sizesEvery, c.collectSizes) })
	wg.Wait()
	return nil
}

// Collect reads the figures once.
func (c *Collector) Collect(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, interval)
	defer cancel()
	f, err := c.cfg.Store.Figures(ctx, c.cfg.Limits)
	c.all.reset()
	if err != nil {
		c.up.Set(0)
		if ctx.Err() == nil {
			c.cfg.Logger.Warn("figures cannot be read", "error", err.Error())
		}
		return
	}
	c.up.Set(1)
	c.show(&f)
}

func (c *Collector) show(f *Figures) {
	for state, n := range f.Installations {
		c.installations.WithLabelValues(state).Set(float64(n))
	}
	for state, n := range f.Bootstraps {
		c.bootstraps.WithLabelValues(state).Set(float64(n))
	}
	for kind, n := range f.Privacy {
		c.privacy.WithLabelValues(kind).Set(float64(n))
	}
	for by, n := range f.Disabled {
		c.disabled.WithLabelValues(by).Set(float64(n))
	}
	for job, n := range f.Jobs {
		c.jobs.WithLabelValues(job.Queue, job.State).Set(float64(n))
	}
	for _, name := range c.cfg.Providers {
		c.silence.WithLabelValues(name).Set(f.Silence[name].Longest.Seconds())
		c.silent.WithLabelValues(name).Set(float64(f.Silence[name].Shops))
		c.late.WithLabelValues(name).Set(float64(f.Late[name]))
	}
	c.oldestInstallation.WithLabelValues().Set(f.OldestInstallation.Seconds())
	c.stalestBootstrap.WithLabelValues().Set(f.StalestBootstrap.Seconds())
	c.oldestPrivacy.WithLabelValues().Set(f.OldestPrivacy.Seconds())
	c.partitions.WithLabelValues().Set(float64(f.DaysAhead))
	c.refused.WithLabelValues().Set(float64(f.Refused))
	c.quarantine.WithLabelValues().Set(float64(f.Quarantined))
	c.defaultRows.WithLabelValues().Set(float64(f.DefaultRows))
	c.pushLag.WithLabelValues().Set(f.PushLag.Seconds())
}
