package ingest

import (
	"github.com/prometheus/client_golang/prometheus"

	"storefront.internal/control/internal/observation"
)

// Metrics counts fetched entities.
type Metrics struct {
	fetched  *prometheus.CounterVec
	failures *prometheus.CounterVec
}

// NewMetrics registers the package's metrics.
func NewMetrics(r prometheus.Registerer) *Metrics {
	m := &Metrics{
		fetched: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "storefront_control_fetched_entities_total",
			Help: "Entities that were fetched from providers, by provider and status (accepted, duplicate, " +
				"stale, quarantined).",
		}, []string{"provider", "status"}),
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "storefront_control_fetch_failures_total",
			Help: "Failed fetches of one entity, by reason.",
		}, []string{"reason"}),
	}
	r.MustRegister(m.fetched, m.failures)
	return m
}

// Applied counts applied entities.
func (m *Metrics) Applied(provider string, outcomes []observation.Outcome) {
	for _, o := range outcomes {
		m.fetched.WithLabelValues(provider, string(o.Status)).Inc()
	}
}
