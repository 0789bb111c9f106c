package recommend

import "github.com/prometheus/client_golang/prometheus"

// Metrics are the figures of the package.
type Metrics struct {
	served           *prometheus.CounterVec
	asked            *prometheus.CounterVec
	duration         prometheus.Histogram
	discarded        *prometheus.CounterVec
	fallbackFailures prometheus.Counter
	leftOut          prometheus.Counter
}

// NewMetrics registers the figures.
func NewMetrics(r prometheus.Registerer) *Metrics {
	m := &Metrics{
		served: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "storefront_edge_recommendations_total",
			Help: "Recommendations that were served, by source: engine or fallback."}, []string{"source"}),
		asked: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "storefront_edge_engine_requests_total",
			Help: "Questions to the engine, by outcome: answered, late, failed, open (the breaker spared the wait), off (none configured)."},
			[]string{"outcome"}),
		duration: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "storefront_edge_engine_request_duration_seconds",
			Help:                        "Time that the engine took, its deadline included.",
			Buckets:                     []float64{.005, .01, .025, .05, .075, .1, .15, .25, .5, 1},
			NativeHistogramBucketFactor: 1.1, NativeHistogramMaxBucketNumber: 100}),
		discarded: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "storefront_edge_recommendation_discards_total",
			Help: "Malformed fields that were discarded from recommendation requests."}, []string{"field"}),
		fallbackFailures: prometheus.NewCounter(prometheus.CounterOpts{Name: "storefront_edge_fallback_failures_total",
			Help: "Fallbacks that failed, so that an empty list was served."}),
		leftOut: prometheus.NewCounter(prometheus.CounterOpts{Name: "storefront_edge_recommendation_items_left_out_total",
			Help: "Items of the engine's answers that were left out because the connection has not got them."}),
	}
	r.MustRegister(m.served, m.asked, m.duration, m.discarded, m.fallbackFailures, m.leftOut)
	return m
}

// Watch registers the state of the breaker.
func (s *Service) Watch(r prometheus.Registerer) {
	r.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "storefront_edge_engine_breaker_open",
		Help: "1 while the engine is not asked because it failed several times in a row."}, func() float64 {
		if s.breaker.open() {
			return 1
		}
		return 0
	}))
}
