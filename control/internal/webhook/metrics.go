package webhook

import "github.com/prometheus/client_golang/prometheus"

// Metrics measures deliveries.
type Metrics struct {
	deliveries *prometheus.CounterVec
	refused    prometheus.Counter
	silence    *prometheus.GaugeVec
	silent     *prometheus.GaugeVec
}

// NewMetrics registers the package's metrics.
func NewMetrics(r prometheus.Registerer) *Metrics {
	m := &Metrics{
		deliveries: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "storefront_control_webhook_deliveries_total",
			Help: "Deliveries of operation 12 that were taken, by provider and by what they are about. How long shops were silent is storefront_control_shop_silence_seconds.",
		}, []string{"provider", "kind"}),
		refused: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "storefront_control_webhook_refused_total",
			Help: "Deliveries of operation 12 for an unknown endpoint, another provider or store, or with a wrong signature.",
		}),
	}
	m.silence = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "storefront_control_shop_silence_seconds",
		Help: "How long the most silent installed shop has sent no delivery, by provider; from its installation on when it never did. 0 without shops.",
	}, []string{"provider"})
	m.silent = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "storefront_control_silent_shops",
		Help: "Installed shops that have sent no delivery for longer than CONTROL_SILENT_AFTER, by provider. Many at once mean that the provider, or the way to operation 12, is down.",
	}, []string{"provider"})
	r.MustRegister(m.deliveries, m.refused, m.silence, m.silent)
	return m
}
