package consume

import "github.com/prometheus/client_golang/prometheus"

// metrics are the figures of the way to the sink.
type metrics struct {
	commitFailures prometheus.Counter
	halted         prometheus.Gauge
}

func newMetrics(reg prometheus.Registerer, oldest func() float64) *metrics {
	m := &metrics{
		commitFailures: prometheus.NewCounter(prometheus.CounterOpts{Name: "storefront_relay_offset_commit_failures_total",
			Help: "Offset commits that failed; the records are read again and stored once all the same."}),
		halted: prometheus.NewGauge(prometheus.GaugeOpts{Name: "storefront_relay_halted_partitions",
			Help: "Partitions that wait for a newer relay, since their next record is of a newer schema version. Alert on more than 0."}),
	}
	reg.MustRegister(m.commitFailures, m.halted, prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "storefront_relay_oldest_held_seconds",
		Help: "Age of the oldest record that this relay has read and not stored; 0 when there is none. Alert on 24 h."}, oldest))
	return m
}
