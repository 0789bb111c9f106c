package postgres

import "github.com/prometheus/client_golang/prometheus"

// Metrics counts repeated transactions.
type Metrics struct {
	retries prometheus.Counter
}

// NewMetrics registers the package's metrics.
func NewMetrics(r prometheus.Registerer) *Metrics {
	m := &Metrics{retries: prometheus.NewCounter(prometheus.CounterOpts{
		Name: "storefront_control_catalog_tx_retries_total",
		Help: "Catalog transactions that were repeated because PostgreSQL ended them for a deadlock or a " +
			"serialization failure. Above 0, the order of locks has a defect.",
	})}
	r.MustRegister(m.retries)
	return m
}
