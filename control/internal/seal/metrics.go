package seal

import "github.com/prometheus/client_golang/prometheus"

// Metrics shows the progress of a rotation of the keyset.
type Metrics struct {
	secrets *prometheus.GaugeVec
	results *prometheus.CounterVec
}

// NewMetrics registers the package's metrics.
func NewMetrics(r prometheus.Registerer) *Metrics {
	m := &Metrics{
		secrets: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "storefront_control_sealed_secrets",
			Help: "Secrets at rest, by table and the key that sealed them (primary, older), as of the last " +
				"count. An older key may be retired when it sealed none.",
		}, []string{"table", "key"}),
		results: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "storefront_control_reseals_total",
			Help: "Secrets of an older key that the rotation handled, by table and result (resealed, " +
				"changed: it was replaced meanwhile, unopened: an operator has to act).",
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
