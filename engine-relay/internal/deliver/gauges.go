package deliver

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"storefront.internal/shared/deliveries"
)

// gaugesLife is how long one reading of the queue answers scrapes.
const gaugesLife = time.Second

// gauges show the view of operation 9 as metrics, read at the scrape. A view that cannot be read leaves its series
// out and sets storefront_engine_view_up to 0: a figure that is not known is not shown.
type gauges struct {
	w *Worker

	pending, oldest, unconfirmed, dead, state, blocked, breaker, up *prometheus.Desc

	mu    sync.Mutex
	read  time.Time
	views map[deliveries.Kind]deliveries.View
}

func newGauges(w *Worker) *gauges {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("storefront_engine_"+name, help, labels, nil)
	}
	return &gauges{
		w:           w,
		pending:     desc("pending", "Deliveries that wait, those being sent and the unconfirmed included.", "kind"),
		oldest:      desc("oldest_pending_seconds", "Age of the oldest waiting delivery; 0 when none waits.", "kind"),
		unconfirmed: desc("unconfirmed_creations", "Deliveries that were sent and not answered.", "kind"),
		dead:        desc("dead_last_24h", "Deliveries that died in the last 24 hours.", "kind"),
		state:       desc("worker_state", "1 for the state that the delivery worker is in.", "state"),
		blocked:     desc("blocked_since_timestamp_seconds", "When the engine refused the credential, in Unix time; 0 while the worker is not blocked."),
		breaker:     desc("breaker_open", "1 while this relay leaves the engine's call alone because it fails.", "kind"),
		up:          desc("view_up", "1 when the queue could be read for this scrape."),
	}
}

// Describe implements prometheus.Collector.
func (g *gauges) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{g.pending, g.oldest, g.unconfirmed, g.dead, g.state, g.blocked, g.breaker, g.up} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (g *gauges) Collect(ch chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	for _, k := range kinds() {
		gauge(g.breaker, truth(!g.w.breakers[k].closed()), k.String())
	}
	views := g.current()
	gauge(g.up, truth(views != nil))
	for k, v := range views {
		gauge(g.pending, float64(v.Total.Pending), k.String())
		gauge(g.oldest, float64(v.Total.OldestPendingSeconds), k.String())
		gauge(g.unconfirmed, float64(v.Total.UnconfirmedCreations), k.String())
		gauge(g.dead, float64(v.Total.DeadLast24h), k.String())
	}
	if v, ok := views[deliveries.Interaction]; ok {
		for _, s := range []deliveries.WorkerState{deliveries.Running, deliveries.Blocked, deliveries.Disabled} {
			gauge(g.state, truth(v.Worker.State == s), string(s))
		}
		since := 0.0
		if v.Worker.State == deliveries.Blocked {
			since = float64(v.Worker.BlockedAt.UnixMilli()) / 1000
		}
		gauge(g.blocked, since)
	}
}

// current returns a reading that is at most gaugesLife old, or nil.
func (g *gauges) current() map[deliveries.Kind]deliveries.View {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.views != nil && time.Since(g.read) < gaugesLife {
		return g.views
	}
	ctx, cancel := context.WithTimeout(context.Background(), storeTimeout/2)
	defer cancel()
	g.views = nil
	views := make(map[deliveries.Kind]deliveries.View)
	for _, k := range kinds() {
		v, err := g.w.cfg.Store.ViewOf(ctx, k)
		if err != nil {
			g.w.log.Error("the queue could not be read for the metrics", "error", err)
			return nil
		}
		views[k] = v
	}
	g.views, g.read = views, time.Now()
	return views
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
