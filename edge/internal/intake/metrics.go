package intake

import (
	"github.com/prometheus/client_golang/prometheus"

	"storefront.internal/shared/fault"
	"storefront.internal/shared/signal"
)

// Metrics are the metrics of recording signals. All labels have closed sets of values.
type Metrics struct {
	signals    *prometheus.CounterVec // elements answered with 202, by status and reason
	refused    *prometheus.CounterVec // whole batches, by error code
	discarded  *prometheus.CounterVec // malformed visitor and client objects
	unrecorded *prometheus.CounterVec // 503s by cause
	produced   *prometheus.CounterVec // records by outcome
	lookups    *prometheus.CounterVec // queries of the ledger
	wait       prometheus.Histogram
	cold       prometheus.Gauge
	dropped    prometheus.Counter

	overQuota prometheus.Counter // the series of refused

	accepted, duplicate, acknowledged prometheus.Counter // series of the above that every request counts
}

// Why a batch could not be recorded: the label cause.
const (
	causeClaims   = "claims"   // Redis
	causeDeadline = "patience" // another attempt held a claim until the deadline
	causeLedger   = "ledger"   // Redis lost its claims and the ledger does not answer
	causeProduce  = "produce"  // Kafka did not acknowledge
	causeLost     = "lost"     // this process stalled, and another attempt took over
)

// NewMetrics returns registered metrics.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		v := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
		reg.MustRegister(v)
		return v
	}
	m := &Metrics{
		signals: counter("storefront_edge_signals_total",
			"Signals answered with 202, by status and, for rejected ones, reason.", "status", "reason"),
		refused: counter("storefront_edge_signal_batches_refused_total",
			"Batches rejected as a whole, by error code; rate_limited: the connection has as many claims as "+
				"EDGE_CLAIMS_PER_CONNECTION allows.", "code"),
		discarded: counter("storefront_edge_signal_fields_discarded_total",
			"Malformed visitor and client objects left out of valid signals.", "field"),
		unrecorded: counter("storefront_edge_signals_unavailable_total",
			"Batches answered with 503, by cause.", "cause"),
		produced: counter("storefront_edge_handoffs_total", "Records sent to Kafka, by outcome.",
			"outcome"),
		lookups: counter("storefront_edge_ledger_lookups_total",
			"Look-ups of a batch's signals in the ledger, by outcome: answered; skipped (the ledger did not "+
				"answer in time, or hung before, and the signals were accepted without it); refused (the "+
				"same "+
				"while Redis lacked its claims, so the batch was answered 503).", "outcome"),
		wait: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "storefront_edge_claim_wait_seconds",
			Help:                        "Time that requests waited for claims that other requests held.",
			Buckets:                     prometheus.ExponentialBuckets(0.01, 2, 10),
			NativeHistogramBucketFactor: 1.1, NativeHistogramMaxBucketNumber: 100}),
		cold: prometheus.NewGauge(prometheus.GaugeOpts{Name: "storefront_edge_claims_cold",
			Help: "1 while Redis lacks claims that it should have, and the ledger is asked too."}),
		dropped: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "storefront_edge_claim_marks_dropped_total",
			Help: "Claim attempts whose status could not be written to Redis; other requests take over " +
				"after 10 s."}),
	}
	reg.MustRegister(m.wait, m.cold, m.dropped)
	for _, cause := range []string{causeClaims, causeDeadline, causeLedger, causeProduce, causeLost} {
		m.unrecorded.WithLabelValues(cause) // alerts need the series before the first failure
	}
	m.overQuota = m.refused.WithLabelValues(string(fault.RateLimited))
	m.accepted = m.signals.WithLabelValues(string(signal.Accepted), "")
	m.duplicate = m.signals.WithLabelValues(string(signal.Duplicate), "")
	m.acknowledged = m.produced.WithLabelValues("acknowledged")
	return m
}

// countAnswered counts the elements of a 202.
func (m *Metrics) countAnswered(results []signal.Result) {
	var accepted, duplicate int
	for i := range results {
		switch results[i].Status {
		case signal.Accepted:
			accepted++
		case signal.Duplicate:
			duplicate++
		default:
			m.signals.WithLabelValues(string(signal.Rejected), string(results[i].Reason)).Inc()
		}
	}
	if accepted > 0 {
		m.accepted.Add(float64(accepted))
	}
	if duplicate > 0 {
		m.duplicate.Add(float64(duplicate))
	}
}

func (m *Metrics) setCold(cold bool) {
	if cold {
		m.cold.Set(1)
	} else {
		m.cold.Set(0)
	}
}
