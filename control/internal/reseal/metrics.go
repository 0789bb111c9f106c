package reseal

import "github.com/prometheus/client_golang/prometheus"

// Metrics tells how far a rotation of the keyset is.
type Metrics struct {
	secrets *prometheus.GaugeVec
	results *prometheus.CounterVec
}

// NewMetrics registers the package's metrics.
func NewMetrics(r prometheus.Registerer) *Metrics {
	m := &Metrics{
		secrets: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "storefront_control_sealed_secrets",
			Help: "Secrets at rest, by table and the key that sealed them (primary, older), as the last process to count saw them. An older key may be retired when nothing is under it.",
		}, []string{"table", "key"}),
		results: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "storefront_control_reseals_total",
			Help: "Secrets under an older key that were looked at, by table and result (resealed, changed: somebody else was first, unopened: wants an operator).",
		}, []string{"table", "result"}),
	}
	r.MustRegister(m.secrets, m.results)
	for _, t := range Tables() {
		for _, result := range []string{"resealed", "changed", "unopened"} {
			m.results.WithLabelValues(string(t), result)
		}
	}
	return m
}

func (m *Metrics) result(t Table, result string) { m.results.WithLabelValues(string(t), result).Inc() }

func (m *Metrics) counted(t Table, current, older int64) {
	m.secrets.WithLabelValues(string(t), "primary").Set(float64(current))
	m.secrets.WithLabelValues(string(t), "older").Set(float64(older))
}
