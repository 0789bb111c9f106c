package sink

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"storefront.internal/shared/pg"
)

// Metrics are the metrics of the sink.
type Metrics struct {
	signals   *prometheus.CounterVec
	decisions *prometheus.CounterVec
	retries   *prometheus.CounterVec
	probes    prometheus.Counter
	foreign   prometheus.Counter
	batch     prometheus.Histogram
	seconds   prometheus.Histogram
	delay     prometheus.Histogram
	now       func() time.Time
}

// NewMetrics registers the metrics of the sink.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	m := &Metrics{
		now: time.Now,
		signals: counter("signals_total",
			"Signals taken from Kafka: stored, deduplicated (already in the ledger) or parked.", "result"),
		decisions: counter("decisions_total", "Decisions taken from Kafka: stored or deduplicated.",
			"result"),
		retries: counter("retries_total",
			"Transactions that failed and were tried again, by class: "+
				"transient, schema, poison, other.", "class"),
		probes: prometheus.NewCounter(prometheus.CounterOpts{Name: "storefront_relay_sink_probes_total",
			Help: "Transactions that were rolled back in the search for refused values."}),
		foreign: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "storefront_relay_sink_foreign_items_total",
			Help: "Stored signals about an item that their Decision did not serve, as far as the Decision " +
				"was stored before: a storefront's defect, or made-up signals. They are stored with " +
				"foreign_item, so that they can be left out of what is learned from a Decision."}),
		batch: histogram("batch_size", "Signals and Decisions per committed transaction.",
			1, 5, 10, 50, 100, 500, 1000, 2000, 5000, 10000),
		seconds: histogram("seconds", "Time of a committed transaction, from BEGIN to the answer to COMMIT.",
			prometheus.ExponentialBuckets(0.001, 2, 14)...),
		delay: histogram("delay_seconds",
			"Time from a signal's arrival at the edge, by the edge's clock, to the commit that stores it.",
			.05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 1800, 3600),
	}
	reg.MustRegister(m.signals, m.decisions, m.retries, m.probes, m.foreign, m.batch, m.seconds, m.delay)
	for _, result := range []string{"stored", "deduplicated", "parked"} {
		m.signals.WithLabelValues(result)
	}
	for _, class := range []pg.ErrorClass{pg.Transient, pg.Schema, pg.Poison, pg.Other} {
		m.retries.WithLabelValues(class.String())
	}
	m.decisions.WithLabelValues("stored")
	m.decisions.WithLabelValues("deduplicated")
	return m
}

func counter(name, help, label string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(
		prometheus.CounterOpts{Name: "storefront_relay_sink_" + name, Help: help}, []string{label})
}

func histogram(name, help string, buckets ...float64) prometheus.Histogram {
	return prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: "storefront_relay_sink_" + name, Help: help, Buckets: buckets,
		NativeHistogramBucketFactor: 1.1, NativeHistogramMaxBucketNumber: 100,
	})
}

func (m *Metrics) committed(b batchTx, out outcome, took time.Duration) {
	m.signals.WithLabelValues("stored").Add(float64(out.stored))
	m.signals.WithLabelValues("deduplicated").Add(float64(out.deduplicated))
	m.signals.WithLabelValues("parked").Add(float64(out.parked))
	m.foreign.Add(float64(out.foreignItems))
	m.decisions.WithLabelValues("stored").Add(float64(out.decisions))
	m.decisions.WithLabelValues("deduplicated").Add(float64(out.repeatedDecisions))
	m.batch.Observe(float64(len(b.signals) + len(b.decisions) + b.repeated))
	m.seconds.Observe(took.Seconds())
	now := m.now()
	for _, p := range b.signals {
		m.delay.Observe(max(0, now.Sub(p.request.record.ReceivedAt).Seconds()))
	}
}

func (m *Metrics) retried(class pg.ErrorClass) { m.retries.WithLabelValues(class.String()).Inc() }

func (m *Metrics) probed() { m.probes.Inc() }
