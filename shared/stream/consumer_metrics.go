package stream

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
)

// consumerMetrics are those of the process's consumer.
type consumerMetrics struct {
	lag         *prometheus.GaugeVec   // records between what is stored and the broker's end
	generations prometheus.Counter     // rebalances that this member took part in
	rebuilds    prometheus.Counter     // stalls
	errors      *prometheus.CounterVec // failed fetches
	lost        *prometheus.CounterVec // lost offsets; each one halts, or was accepted
}

func newConsumerMetrics(reg prometheus.Registerer) *consumerMetrics {
	return &consumerMetrics{
		lag: register(reg, prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "storefront_relay_consumer_lag_records", Help: "Records of the partitions of this member that are not stored yet.",
		}, []string{"topic", "partition"})),
		generations: register(reg, prometheus.NewCounter(prometheus.CounterOpts{
			Name: "storefront_relay_consumer_generations_total", Help: "Generations of the consumer group that this member joined.",
		})),
		rebuilds: register(reg, prometheus.NewCounter(prometheus.CounterOpts{
			Name: "storefront_relay_consumer_rebuild_total", Help: "Consumers that were rebuilt since they stood still beside unread records.",
		})),
		errors: register(reg, prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "storefront_relay_consumer_fetch_errors_total", Help: "Fetches that failed.",
		}, []string{"topic"})),
		lost: register(reg, prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "storefront_relay_consumer_offset_lost_total", Help: "Offsets that the broker no longer had. Records may be lost.",
		}, []string{"topic"})),
	}
}

// forget drops the lag of partitions that another member may have now.
func (m *consumerMetrics) forget(places []place) {
	for _, at := range places {
		m.lag.DeleteLabelValues(at.topic, strconv.Itoa(at.partition))
	}
}
