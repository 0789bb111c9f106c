package stream

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
)

// producerMetrics are the metrics of one producer; the label topic tells the producers of a process apart.
type producerMetrics struct {
	outcomes    [3]prometheus.Counter // by Outcome
	pending     prometheus.Gauge
	records     prometheus.Observer
	seconds     prometheus.Observer
	retries     prometheus.Counter
	unreachable prometheus.Gauge

	resentLate, resentFailed prometheus.Counter // by cause
}

func newProducerMetrics(reg prometheus.Registerer, topic string) *producerMetrics {
	outcomes := register(reg, prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "storefront_stream_produce_outcome_total",
		Help: "Records handed to the producer, by outcome: acknowledged by all in-sync replicas, refused " +
			"(never handed to the transport), unknown (may be stored).",
	}, []string{"topic", "outcome"}))
	resent := register(reg, prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "storefront_stream_produce_resent_records_total",
		Help: "Records that were sent a second time although the broker may have them, so that Kafka may " +
			"have them twice, by cause: late (another leader answers sooner), failed.",
	}, []string{"topic", "cause"}))
	m := &producerMetrics{
		resentLate:   resent.WithLabelValues(topic, "late"),
		resentFailed: resent.WithLabelValues(topic, "failed"),
		pending: register(reg, prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "storefront_stream_produce_pending_bytes",
			Help: "Bytes of records that wait for a flush or for its acknowledgement.",
		}, []string{"topic"})).WithLabelValues(topic),
		records: register(reg, prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "storefront_stream_produce_flush_records", Help: "Records sent in one flush.",
			Buckets:                     prometheus.ExponentialBuckets(1, 2, 12),
			NativeHistogramBucketFactor: 1.1, NativeHistogramMaxBucketNumber: 100,
		}, []string{"topic"})).WithLabelValues(topic),
		seconds: register(reg, prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:                        "storefront_stream_produce_flush_seconds",
			Help:                        "Time from sending a flush to the answer of the broker.",
			Buckets:                     []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5},
			NativeHistogramBucketFactor: 1.1, NativeHistogramMaxBucketNumber: 100,
		}, []string{"topic"})).WithLabelValues(topic),
		retries: register(reg, prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "storefront_stream_produce_retries_total",
			Help: "Flushes that were sent a second time, to another partition if there is one.",
		}, []string{"topic"})).WithLabelValues(topic),
		unreachable: register(reg, prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "storefront_stream_produce_unreachable_leaders",
			Help: "Brokers that lead partitions of the topic and did not answer the latest requests: they " +
				"get no records but a probe every few seconds.",
		}, []string{"topic"})).WithLabelValues(topic),
	}
	for _, o := range []Outcome{Unknown, Acknowledged, Refused} {
		m.outcomes[o] = outcomes.WithLabelValues(topic, o.String())
	}
	return m
}

// register registers c and returns it, or returns the collector that is registered under its name already.
// With a nil Registerer it only returns c.
func register[C prometheus.Collector](reg prometheus.Registerer, c C) C {
	if reg == nil {
		return c
	}
	err := reg.Register(c)
	var there prometheus.AlreadyRegisteredError
	if errors.As(err, &there) {
		if same, ok := there.ExistingCollector.(C); ok {
			return same
		}
	}
	if err != nil {
		panic(err) // two meanings of one name: a programming error, as with MustRegister
	}
	return c
}
