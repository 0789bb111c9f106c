package installation

import (
	"github.com/prometheus/client_golang/prometheus"
)

// Metrics counts what sagas and sweeps did.
type Metrics struct {
	steps    *prometheus.CounterVec
	failures *prometheus.CounterVec
	repairs  *prometheus.CounterVec
	sweeps   *prometheus.CounterVec
}

// NewMetrics registers the package's metrics.
func NewMetrics(r prometheus.Registerer) *Metrics {
	m := &Metrics{
		steps: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "storefront_control_installation_steps_total",
			Help: "States that installations reached, by provider and state (webhooks_registered, " +
				"bootstrap_started, completed, failed).",
		}, []string{"provider", "state"}),
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "storefront_control_installation_failures_total",
			Help: "Failed attempts of installation steps, by provider and reason.",
		}, []string{"provider", "reason"}),
		repairs: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "storefront_control_subscriptions_mended_total",
			Help: "Subscriptions that the sweep repaired, by provider and repair (made: was missing, " +
				"removed: was doubled or disabled, rekeyed: had another secret of the app).",
		}, []string{"provider", "did"}),
		sweeps: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "storefront_control_subscription_sweeps_total",
			Help: "Sweeps of the subscriptions of a connection, by provider and result (ok, failed).",
		}, []string{"provider", "result"}),
	}
	r.MustRegister(m.steps, m.failures, m.repairs, m.sweeps)
	return m
}

func (m *Metrics) advanced(provider string, to State) {
	m.steps.WithLabelValues(provider, string(to)).Inc()
}

func (m *Metrics) failed(provider string, f Failure) {
	m.failures.WithLabelValues(provider, f.Reason).Inc()
	if f.Final {
		m.advanced(provider, StateFailed)
	}
}

func (m *Metrics) swept(provider string, done Repairs, err error) {
	result := "ok"
	if err != nil {
		result = "failed"
	}
	m.sweeps.WithLabelValues(provider, result).Inc()
	m.repairs.WithLabelValues(provider, "made").Add(float64(done.Created))
	m.repairs.WithLabelValues(provider, "removed").Add(float64(done.Removed))
	m.repairs.WithLabelValues(provider, "rekeyed").Add(float64(done.Rotated))
}
