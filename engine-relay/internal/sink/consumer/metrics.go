package consumer

import "github.com/prometheus/client_golang/prometheus"

// metrics are the metrics of consuming.
type metrics struct {
	commitFailures prometheus.Counter
	halted         prometheus.Gauge
	reread         *prometheus.CounterVec
	behind         *prometheus.GaugeVec
}

func newMetrics(reg prometheus.Registerer, oldest func() float64, topics ...string) *metrics {
	m := &metrics{
		commitFailures: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "storefront_relay_offset_commit_failures_total",
			Help: "Offset commits that failed. The records are read again and still stored once.",
		}),
		halted: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "storefront_relay_halted_partitions",
			Help: "Partitions whose next record has a newer schema version; " +
				"they wait for a newer relay. Alert above 0.",
		}),
		reread: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "storefront_relay_reread_records_total",
			Help: "Records that relays read again because PostgreSQL was behind the group's offset: " +
				"it was restored to an earlier time, or failed over to a standby that was behind.",
		}, []string{"topic"}),
		behind: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "storefront_relay_stored_behind_records",
			Help: "Of these records, those that this relay has still to store again. Sum over the relays.",
		}, []string{"topic"}),
	}
	for _, topic := range topics {
		m.reread.WithLabelValues(topic)
		m.behind.WithLabelValues(topic)
	}
	reg.MustRegister(m.commitFailures, m.halted, m.reread, m.behind)
	reg.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "storefront_relay_oldest_held_seconds",
		Help: "Age of the oldest record that this relay has read and not stored; 0 when there is none. " +
			"Alert at 24 h.",
	}, oldest))
	return m
}
