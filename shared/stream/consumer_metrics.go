package stream

import "github.com/prometheus/client_golang/prometheus"

// consumerMetrics are those of the process's consumer.
type consumerMetrics struct {
	generations prometheus.Counter     // rebalances that this member took part in
	rebuilds    prometheus.Counter     // stalls
	errors      *prometheus.CounterVec // failed fetches
	lost        *prometheus.CounterVec // lost offsets; each one halts, or was accepted
}

func newConsumerMetrics(reg prometheus.Registerer) *consumerMetrics {
	return &consumerMetrics{
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
