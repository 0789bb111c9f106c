package httpapi

import "github.com/prometheus/client_golang/prometheus"

// Metrics measures requests.
type Metrics struct {
	requests      *prometheus.HistogramVec
	panics        prometheus.Counter
	bodyBytes     prometheus.Gauge
	bodiesRefused prometheus.Counter
}

// NewMetrics registers the package's metrics.
func NewMetrics(r prometheus.Registerer) *Metrics {
	m := &Metrics{
		requests: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "storefront_control_http_request_duration_seconds",
			Help: "Time to answer a request of the internal surface, by operation " +
				"(of openapi.yaml, or unmatched) and HTTP status.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5,
				1, 2.5, 5, 10, 20},
			NativeHistogramBucketFactor: 1.1, NativeHistogramMaxBucketNumber: 100,
		}, []string{"operation", "code"}),
		panics: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "storefront_control_http_panics_total",
			Help: "Panics of handlers of the internal surface; each was answered with a 500.",
		}),
		bodyBytes: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "storefront_control_observation_body_bytes",
			Help: "Bytes of request bodies that are buffered now, out of CONTROL_BODY_BUDGET.",
		}),
		bodiesRefused: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "storefront_control_observation_bodies_refused_total",
			Help: "Request bodies that did not fit into CONTROL_BODY_BUDGET; each was answered with a 503.",
		}),
	}
	r.MustRegister(m.requests, m.panics, m.bodyBytes, m.bodiesRefused)
	return m
}
