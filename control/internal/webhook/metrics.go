package webhook

import "github.com/prometheus/client_golang/prometheus"

// Metrics measures deliveries.
type Metrics struct {
	deliveries *prometheus.CounterVec
	refused    prometheus.Counter
}

// NewMetrics registers the package's metrics.
func NewMetrics(r prometheus.Registerer) *Metrics {
	m := &Metrics{
		deliveries: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "storefront_control_webhook_deliveries_total",
			Help: "Deliveries of operation 12 that were taken, by provider and by what they are about. A provider whose count stands still is silent.",
		}, []string{"provider", "kind"}),
		refused: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "storefront_control_webhook_refused_total",
			Help: "Deliveries of operation 12 for an unknown endpoint, another provider or store, or with a wrong signature.",
		}),
	}
	r.MustRegister(m.deliveries, m.refused)
	return m
}
