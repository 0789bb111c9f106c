package deliver

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"storefront.internal/shared/breaker"
	"storefront.internal/shared/deliveries"
)

// viewTTL is how long one reading of the queue serves scrapes.
const viewTTL = time.Second

// queueCollector exports the queue view as metrics. It reads the view at the scrape. When that fails, it
// leaves the series of the queue out and sets storefront_engine_view_up to 0.
type queueCollector struct {
	w *Worker

	pending, oldest, unconfirmed, dead, lanes, state, blocked, breaker, massRefusal, up *prometheus.Desc

	mu    sync.Mutex
	read  time.Time
	views map[deliveries.Kind]queueReading
}

// queueReading is what one kind has in the queue.
type queueReading struct {
	deliveries.View
	lanes map[string]int64 // by state
}

func newQueueCollector(w *Worker) *queueCollector {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("storefront_engine_"+name, help, labels, nil)
	}
	return &queueCollector{
		w: w,
		pending: desc("pending",
			"Deliveries in the queue, including unconfirmed ones and those in flight.", "kind"),
		oldest: desc("oldest_pending_seconds",
			"Age of the oldest delivery in the queue; 0 when it is empty.", "kind"),
		unconfirmed: desc("unconfirmed_creations", "Deliveries that were sent and got no answer.", "kind"),
		dead: desc("dead_last_24h", "Deliveries that were dead-lettered in the last 24 hours.",
			"kind"),
		lanes: desc("lanes",
			"Lanes that hold deliveries, by what they wait for: leased (a relay sends them now), retry "+
				"(retry lanes: the engine refused their deliveries before, each waits for its next "+
				"attempt), resting (the engine asked to wait, or a request failed), ready (for a relay, "+
				"or for the Decision of their first deliveries).", "kind", "state"),
		state: desc("worker_state", "1 for the state of the delivery worker.", "state"),
		blocked: desc("blocked_since_timestamp_seconds",
			"Unix time at which the engine refused the credential; 0 while the worker is not blocked."),
		breaker: desc("breaker_open",
			"1 while this relay's circuit breaker for the engine's call is open or half-open.", "kind"),
		massRefusal: desc("mass_refusal",
			"1 while the engine refuses most deliveries that this relay sends alone, by 400, 409, 410, "+
				"413 or 422. None of them is dead-lettered then.", "kind"),
		up: desc("view_up", "1 when the queue could be read for this scrape."),
	}
}

// Describe implements prometheus.Collector.
func (g *queueCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		g.pending, g.oldest, g.unconfirmed, g.dead, g.lanes, g.state, g.blocked, g.breaker, g.massRefusal,
		g.up,
	} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (g *queueCollector) Collect(ch chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	for _, k := range kinds() {
		gauge(g.breaker, boolGauge(g.w.breakers[k].State() != breaker.Closed), k.String())
		gauge(g.massRefusal, boolGauge(g.w.guards[k].active()), k.String())
	}
	views := g.currentViews()
	gauge(g.up, boolGauge(views != nil))
	for k, v := range views {
		gauge(g.pending, float64(v.Total.Pending), k.String())
		gauge(g.oldest, float64(v.Total.OldestPendingSeconds), k.String())
		gauge(g.unconfirmed, float64(v.Total.UnconfirmedCreations), k.String())
		gauge(g.dead, float64(v.Total.DeadLast24h), k.String())
		for _, state := range deliveries.LaneStates() {
			gauge(g.lanes, float64(v.lanes[state]), k.String(), state)
		}
	}
	if v, ok := views[deliveries.Interaction]; ok {
		states := []deliveries.WorkerState{deliveries.Running, deliveries.Blocked, deliveries.Disabled}
		for _, s := range states {
			gauge(g.state, boolGauge(v.Worker.State == s), string(s))
		}
		since := 0.0
		if v.Worker.State == deliveries.Blocked {
			since = float64(v.Worker.BlockedAt.UnixMilli()) / 1000
		}
		gauge(g.blocked, since)
	}
}

// currentViews returns a reading that is at most viewTTL old, or nil.
func (g *queueCollector) currentViews() map[deliveries.Kind]queueReading {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.views != nil && time.Since(g.read) < viewTTL {
		return g.views
	}
	ctx, cancel := context.WithTimeout(context.Background(), storeTimeout/2)
	defer cancel()
	g.views = nil
	views := make(map[deliveries.Kind]queueReading)
	for _, k := range kinds() {
		v, err := g.w.cfg.Store.ViewOf(ctx, k)
		var lanes map[string]int64
		if err == nil {
			lanes, err = g.w.cfg.Store.CountLanes(ctx, k)
		}
		if err != nil {
			g.w.log.Error("the queue could not be read for the metrics", "error", err)
			return nil
		}
		views[k] = queueReading{v, lanes}
	}
	g.views, g.read = views, time.Now()
	return views
}

func boolGauge(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
