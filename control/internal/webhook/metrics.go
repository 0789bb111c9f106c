package webhook

import "github.com/prometheus/client_golang/prometheus"

// Metrics counts webhooks.
type Metrics struct {
	accepted *prometheus.CounterVec
	rejected prometheus.Counter
	limited  prometheus.Counter
}

// NewMetrics registers the package's metrics.
func NewMetrics(r prometheus.Registerer) *Metrics {
	m := &Metrics{
		accepted: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "storefront_control_webhook_deliveries_total",
			Help: "Webhooks that were accepted, by provider and kind.",
		}, []string{"provider", "kind"}),
		rejected: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "storefront_control_webhook_refused_total",
			Help: "Webhooks that were rejected: an unknown endpoint, another provider or store, or a wrong " +
				"signature.",
		}),
		limited: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "storefront_control_webhook_limited_total",
			Help: "Webhooks beyond what an endpoint may deliver in a minute; each was answered with a 429.",
		}),
	}
	r.MustRegister(m.accepted, m.rejected, m.limited)
	return m
}
