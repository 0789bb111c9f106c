package observation

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"storefront.internal/shared/catalog"
)

// Metrics measures deliveries, the quarantine, and pushes of items.
type Metrics struct {
	observations *prometheus.CounterVec
	flaws        *prometheus.CounterVec
	batch        prometheus.Histogram
	replays      *prometheus.CounterVec
	quarantine   prometheus.Gauge
	strays       prometheus.Gauge
	pushes       *prometheus.CounterVec
	waiting      prometheus.Gauge
}

// unread is the entity label of what could not be read so far.
const unread = "unread"

// NewMetrics registers the package's metrics.
func NewMetrics(r prometheus.Registerer) *Metrics {
	m := &Metrics{
		observations: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "storefront_control_observations_total",
			Help: "Elements of operation 4, by entity (product, category, order, unread) and status.",
		}, []string{"entity", "status"}),
		flaws: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "storefront_control_observation_flaws_total",
			Help: "Elements of operation 4 that were quarantined or rejected, by the first rule that they break.",
		}, []string{"rule"}),
		batch: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:                        "storefront_control_observation_batch_seconds",
			Help:                        "Time from the split body of operation 4 to the commit of its elements.",
			Buckets:                     []float64{.0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 20},
			NativeHistogramBucketFactor: 1.1, NativeHistogramMaxBucketNumber: 100,
		}),
		replays: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "storefront_control_quarantine_replays_total",
			Help: "Quarantined observations that were replayed, by the status that they got.",
		}, []string{"status"}),
		quarantine: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "storefront_control_quarantine_size",
			Help: "Observations in the quarantine, up to 10,000.",
		}),
		strays: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "storefront_control_default_partition_rows",
			Help: "Observations and notifications that found no day's partition, up to 1,000 each. More than 0 wants an operator.",
		}),
		pushes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "storefront_control_item_pushes_total",
			Help: "Items whose state was pushed to Redis, by result (written, newer: Redis held no older one, failed).",
		}, []string{"result"}),
		waiting: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "storefront_control_item_push_lag_seconds",
			Help: "Age of the oldest push of items to Redis that is not done.",
		}),
	}
	r.MustRegister(m.observations, m.flaws, m.batch, m.replays, m.quarantine, m.strays, m.pushes, m.waiting)
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
			m.flaws.WithLabelValues(results[i].Reason).Inc()
		} else {
			e := &b.Elements[n]
			n++
			entity = string(e.Entity)
			if e.Quarantined != nil {
				m.flaws.WithLabelValues(string(e.Quarantined.Rule)).Inc()
			}
		}
		m.observations.WithLabelValues(entity, string(results[i].Status)).Inc()
	}
}

func (m *Metrics) replayed(s Status) { m.replays.WithLabelValues(string(s)).Inc() }
