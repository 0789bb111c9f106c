package observation

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"storefront.internal/shared/catalog"
)

// Metrics measures deliveries of observations, replays, and pushes of items.
type Metrics struct {
	observations *prometheus.CounterVec
	violations   *prometheus.CounterVec
	batch        prometheus.Histogram
	replays      *prometheus.CounterVec
	pushes       *prometheus.CounterVec
}

// unread is the entity label of elements whose entity could not be read.
const unread = "unread"

// NewMetrics registers the package's metrics.
func NewMetrics(r prometheus.Registerer) *Metrics {
	m := &Metrics{
		observations: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "storefront_control_observations_total",
			Help: "Elements of deliver_observations, by entity (product, category, order, unread) and " +
				"status.",
		}, []string{"entity", "status"}),
		violations: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "storefront_control_observation_flaws_total",
			Help: "Elements of deliver_observations that were quarantined or rejected, by the first rule " +
				"that they break.",
		}, []string{"rule"}),
		batch: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "storefront_control_observation_batch_seconds",
			Help: "Time from the parsed body of deliver_observations to the commit " +
				"of its elements.",
			Buckets: []float64{.0025, .005, .01, .025, .05, .1, .25, .5,
				1, 2.5, 5, 10, 20},
			NativeHistogramBucketFactor: 1.1, NativeHistogramMaxBucketNumber: 100,
		}),
		replays: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "storefront_control_quarantine_replays_total",
			Help: "Replayed quarantined observations, by their new status.",
		}, []string{"status"}),
		pushes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "storefront_control_item_pushes_total",
			Help: "Items that were pushed to Redis, by result (written, newer: Redis held the same or a " +
				"newer revision, failed).",
		}, []string{"result"}),
	}
	r.MustRegister(m.observations, m.violations, m.batch, m.replays, m.pushes)
	for _, e := range catalog.Entities() {
		for _, s := range Statuses() {
			m.observations.WithLabelValues(string(e), string(s))
		}
	}
	for _, result := range []string{"written", "newer", "failed"} {
		m.pushes.WithLabelValues(result)
	}
	return m
}

func (m *Metrics) delivered(b *Batch, results []Result, took time.Duration) {
	m.batch.Observe(took.Seconds())
	n := 0
	for i := range results {
		entity := unread
		if results[i].Status == Rejected {
			m.violations.WithLabelValues(results[i].Reason).Inc()
		} else {
			e := &b.Elements[n]
			n++
			entity = string(e.Entity)
			if e.Quarantined != nil {
				m.violations.WithLabelValues(string(e.Quarantined.Rule)).Inc()
			}
		}
		m.observations.WithLabelValues(entity, string(results[i].Status)).Inc()
	}
}

func (m *Metrics) replayed(s Status) { m.replays.WithLabelValues(string(s)).Inc() }
