package httpapi

import "github.com/prometheus/client_golang/prometheus"

// Metrics measures requests.
type Metrics struct {
	requests *prometheus.HistogramVec
	panics   prometheus.Counter
	uploads  bodyMetrics
	webhooks bodyMetrics
}

// bodyMetrics measures the buffered bodies of one operation.
type bodyMetrics struct {
	bytes   prometheus.Gauge
	refused prometheus.Counter
}

func newBodyMetrics(name, budget string) bodyMetrics {
	return bodyMetrics{
		bytes: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "storefront_control_" + name + "_body_bytes",
			Help: "Bytes of request bodies that are buffered now, out of " + budget + ".",
		}),
		refused: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "storefront_control_" + name + "_bodies_refused_total",
			Help: "Request bodies that did not fit into " + budget + "; each was answered with a 503.",
		}),
	}
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
		uploads:  newBodyMetrics("observation", "CONTROL_BODY_BUDGET"),
		webhooks: newBodyMetrics("webhook", "CONTROL_WEBHOOK_BODY_BUDGET"),
	}
	r.MustRegister(m.requests, m.panics, m.uploads.bytes, m.uploads.refused,
		m.webhooks.bytes, m.webhooks.refused)
	return m
}
