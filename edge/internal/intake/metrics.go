package intake

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"storefront.internal/shared/fault"
	"storefront.internal/shared/signal"
)

// Metrics are what operation 1 reports of itself. All labels are of closed sets.
type Metrics struct {
	signals    *prometheus.CounterVec // elements answered with 202, by outcome
	refused    *prometheus.CounterVec // whole batches, by code
	discarded  *prometheus.CounterVec // malformed visitor and client objects
	unrecorded *prometheus.CounterVec // 503s by what was in the way
	produced   *prometheus.CounterVec // hand-offs by outcome
	lookups    *prometheus.CounterVec // questions to the ledger
	wait       prometheus.Histogram
	cold       prometheus.Gauge
	dropped    prometheus.Counter

	accepted, duplicate, acknowledged prometheus.Counter // of the above, for every request
}

// What stood in the way of recording a batch: the label cause.
const (
	causeClaims   = "claims"   // Redis
	causePatience = "patience" // another attempt held a claim until the deadline
	causeLedger   = "ledger"   // Redis is cold and the ledger cannot be asked
	causeProduce  = "produce"  // Kafka did not acknowledge
	causeLost     = "lost"     // this process stalled, and another one took over
)

// NewMetrics registers the metrics.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		v := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
		reg.MustRegister(v)
		return v
	}
	m := &Metrics{
		signals:    counter("storefront_edge_signals_total", "Signals answered with 202, by status and, of rejected ones, reason.", "status", "reason"),
		refused:    counter("storefront_edge_signal_batches_refused_total", "Batches refused as a whole, by code of the problem.", "code"),
		discarded:  counter("storefront_edge_signal_fields_discarded_total", "Malformed visitor and client objects left out of signals that were taken.", "field"),
		unrecorded: counter("storefront_edge_signals_unavailable_total", "Batches answered with 503, by what was in the way.", "cause"),
		produced:   counter("storefront_edge_handoffs_total", "Records handed to Kafka, by outcome.", "outcome"),
		lookups:    counter("storefront_edge_ledger_lookups_total", "Questions to the ledger whether signals are stored, by outcome.", "outcome"),
		wait: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "storefront_edge_claim_wait_seconds",
			Help: "Time that requests spent waiting for claims that other requests held.", Buckets: prometheus.ExponentialBuckets(0.01, 2, 10),
			NativeHistogramBucketFactor: 1.1, NativeHistogramMaxBucketNumber: 100}),
		cold: prometheus.NewGauge(prometheus.GaugeOpts{Name: "storefront_edge_claims_cold",
			Help: "1 while Redis forgot claims that it should still have, and the ledger is asked too."}),
		dropped: prometheus.NewCounter(prometheus.CounterOpts{Name: "storefront_edge_claim_marks_dropped_total",
			Help: "Attempts whose end could not be written to Redis; the lease ended them."}),
	}
	reg.MustRegister(m.wait, m.cold, m.dropped)
	for _, cause := range []string{causeClaims, causePatience, causeLedger, causeProduce, causeLost} { // what alerts look at is there before it happens
		m.unrecorded.WithLabelValues(cause)
	}
	m.accepted, m.duplicate = m.signals.WithLabelValues(string(signal.Accepted), ""), m.signals.WithLabelValues(string(signal.Duplicate), "")
	m.acknowledged = m.produced.WithLabelValues("acknowledged")
	return m
}

func (m *Metrics) refuse(code fault.Code) { m.refused.WithLabelValues(string(code)).Inc() }

// answered counts the elements of a 202.
func (m *Metrics) answered(results []signal.Result) {
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

func (m *Metrics) waited(d time.Duration) { m.wait.Observe(d.Seconds()) }

func (m *Metrics) temperature(e Epoch) {
	if e == Warm {
		m.cold.Set(0)
	} else {
		m.cold.Set(1)
	}
}
