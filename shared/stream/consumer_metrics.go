package stream

import "github.com/prometheus/client_golang/prometheus"

// consumerMetrics are the metrics of the consumer of the process.
type consumerMetrics struct {
	generations prometheus.Counter
	rebuilds    prometheus.Counter
	errors      *prometheus.CounterVec
	lost        *prometheus.CounterVec
}

// newConsumerMetrics makes the series of every topic, which exist before anything happened: a counter that
// appears with its first event looks to Prometheus as if it had never changed.
func newConsumerMetrics(reg prometheus.Registerer, topics []string) *consumerMetrics {
	m := &consumerMetrics{
		generations: register(reg, prometheus.NewCounter(prometheus.CounterOpts{
			Name: "storefront_relay_consumer_generations_total",
			Help: "Generations of the consumer group that this member joined.",
		})),
		rebuilds: register(reg, prometheus.NewCounter(prometheus.CounterOpts{
			Name: "storefront_relay_consumer_rebuild_total",
			Help: "Times that a consumer was rebuilt because it made no progress beside unread records.",
		})),
		errors: register(reg, prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "storefront_relay_consumer_fetch_errors_total", Help: "Fetches that failed.",
		}, []string{"topic"})),
		lost: register(reg, prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "storefront_relay_consumer_offset_lost_total",
			Help: "Offsets that the broker no longer had. Records may be lost unread.",
		}, []string{"topic"})),
	}
	for _, topic := range topics {
		m.errors.WithLabelValues(topic)
		m.lost.WithLabelValues(topic)
	}
	return m
}
