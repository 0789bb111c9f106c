package recommend

import (
	"github.com/prometheus/client_golang/prometheus"

	"storefront.internal/shared/breaker"
)

// Metrics are the metrics of the package.
type Metrics struct {
	served           *prometheus.CounterVec
	engineRequests   *prometheus.CounterVec
	duration         prometheus.Histogram
	discarded        *prometheus.CounterVec
	fallbackFailures prometheus.Counter
	unownedItems     prometheus.Counter
	unexpanded       prometheus.Counter
}

// NewMetrics registers the metrics.
func NewMetrics(r prometheus.Registerer) *Metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		v := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
		r.MustRegister(v)
		return v
	}
	m := &Metrics{
		served: counter("storefront_edge_recommendations_total",
			"Recommendations served, by source: engine or fallback.", "source"),
		engineRequests: counter("storefront_edge_engine_requests_total",
			"Requests to the engine, by outcome: answered, late, failed, open (not sent: the circuit "+
				"breaker is open), off (no engine is configured).",
			"outcome"),
		duration: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:                        "storefront_edge_engine_request_duration_seconds",
			Help:                        "Time until the engine answered or its deadline passed.",
			Buckets:                     []float64{.005, .01, .025, .05, .075, .1, .15, .25, .5, 1},
			NativeHistogramBucketFactor: 1.1, NativeHistogramMaxBucketNumber: 100,
		}),
		discarded: counter("storefront_edge_recommendation_discards_total",
			"Malformed fields discarded from recommendation requests.", "field"),
		fallbackFailures: counter("storefront_edge_fallback_failures_total",
			"Fallbacks that failed; an empty list was served.").WithLabelValues(),
		unownedItems: counter("storefront_edge_recommendation_items_left_out_total",
			"Items of the engine's answers left out because the connection does not have them.",
		).WithLabelValues(),
		unexpanded: counter("storefront_edge_recommendation_items_unexpanded_total",
			"Items of answers that were asked for with `expand` and were not at hand within 20 ms.",
		).WithLabelValues(),
	}
	r.MustRegister(m.duration)
	for _, outcome := range []string{"answered", "late", "failed", "open", "off"} {
		m.engineRequests.WithLabelValues(outcome)
	}
	for _, source := range []string{fromEngine, fromFallback} {
		m.served.WithLabelValues(source)
	}
	return m
}

// Watch registers the state of the circuit breaker.
func (s *Service) Watch(r prometheus.Registerer) {
	r.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "storefront_edge_engine_breaker_open",
		Help: "1 while the circuit breaker of the engine is open or half-open."}, func() float64 {
		if s.breaker.State() != breaker.Closed {
			return 1
		}
		return 0
	}))
}
