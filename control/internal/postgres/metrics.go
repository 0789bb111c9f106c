package postgres

import "github.com/prometheus/client_golang/prometheus"

// Metrics counts what should not happen.
type Metrics struct {
	retries prometheus.Counter
}

// NewMetrics registers the package's metrics.
func NewMetrics(r prometheus.Registerer) *Metrics {
	m := &Metrics{retries: prometheus.NewCounter(prometheus.CounterOpts{
		Name: "storefront_control_catalog_tx_retries_total",
		Help: "Transactions of the catalog that the server ended for a deadlock or a serialization failure; they were repeated. More than 0 is a fault of the order of locks.",
	})}
	r.MustRegister(m.retries)
	return m
}
