package record

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"storefront.internal/shared/pg"
)

// Metrics are the sink's figures.
type Metrics struct {
	signals   *prometheus.CounterVec
	decisions *prometheus.CounterVec
	retries   *prometheus.CounterVec
	probes    prometheus.Counter
	batch     prometheus.Histogram
	seconds   prometheus.Histogram
	delay     prometheus.Histogram
	now       func() time.Time
}

// NewMetrics registers the sink's figures.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	m := &Metrics{
		now: time.Now,
		signals: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "storefront_relay_sink_signals_total",
			Help: "Signals that left Kafka: stored, deduplicated (the ledger had them) or parked."}, []string{"result"}),
		decisions: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "storefront_relay_sink_decisions_total",
			Help: "Decisions that left Kafka: stored or deduplicated."}, []string{"result"}),
		retries: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "storefront_relay_sink_retries_total",
			Help: "Transactions that failed and were tried again, by class: transient, schema, poison, other."}, []string{"class"}),
		probes: prometheus.NewCounter(prometheus.CounterOpts{Name: "storefront_relay_sink_probes_total",
			Help: "Transactions that were undone in search of refused values."}),
		batch: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "storefront_relay_sink_batch_size",
			Help: "Signals and Decisions per committed transaction.", Buckets: []float64{1, 5, 10, 50, 100, 500, 1000, 2000, 5000, 10000},
			NativeHistogramBucketFactor: 1.1, NativeHistogramMaxBucketNumber: 100}),
		seconds: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "storefront_relay_sink_seconds",
			Help: "Time of a committed transaction, from BEGIN to the answer to COMMIT.", Buckets: prometheus.ExponentialBuckets(0.001, 2, 14),
			NativeHistogramBucketFactor: 1.1, NativeHistogramMaxBucketNumber: 100}),
		delay: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "storefront_relay_sink_delay_seconds",
			Help: "Time from a signal's arrival at the edge, by the edge's clock, to its being stored.", Buckets: []float64{.05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 1800, 3600},
			NativeHistogramBucketFactor: 1.1, NativeHistogramMaxBucketNumber: 100}),
	}
	reg.MustRegister(m.signals, m.decisions, m.retries, m.probes, m.batch, m.seconds, m.delay)
	for _, result := range []string{"stored", "deduplicated", "parked"} {
		m.signals.WithLabelValues(result)
	}
	m.decisions.WithLabelValues("stored")
	m.decisions.WithLabelValues("deduplicated")
	return m
}

func (m *Metrics) committed(w work, out outcome, took time.Duration) {
	m.signals.WithLabelValues("stored").Add(float64(out.stored))
	m.signals.WithLabelValues("deduplicated").Add(float64(out.deduplicated))
	m.signals.WithLabelValues("parked").Add(float64(out.parked))
	m.decisions.WithLabelValues("stored").Add(float64(out.decisions))
	m.decisions.WithLabelValues("deduplicated").Add(float64(out.repeatedDecisions))
	m.batch.Observe(float64(len(w.entries) + len(w.decisions) + w.repeated))
	m.seconds.Observe(took.Seconds())
	now := m.now()
	for _, e := range w.entries {
		m.delay.Observe(max(0, now.Sub(e.request.record.ReceivedAt).Seconds()))
	}
}

func (m *Metrics) retried(class pg.ErrorClass) { m.retries.WithLabelValues(class.String()).Inc() }

func (m *Metrics) probed() { m.probes.Inc() }
