package stream

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
)

// producerMetrics are one producer's; the label topic tells those of a process apart.
type producerMetrics struct {
	outcomes [3]prometheus.Counter // by Outcome: what callers were told
	pending  prometheus.Gauge
	records  prometheus.Observer
	seconds  prometheus.Observer
	retries  prometheus.Counter
}

func newProducerMetrics(reg prometheus.Registerer, topic string) *producerMetrics {
	outcomes := register(reg, prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "storefront_stream_produce_outcome_total", Help: "Records handed to the producer, by what the caller was told.",
	}, []string{"topic", "outcome"}))
	m := &producerMetrics{
		pending: register(reg, prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "storefront_stream_produce_pending_bytes", Help: "Bytes of records that wait for a flush or for its answer.",
		}, []string{"topic"})).WithLabelValues(topic),
		records: register(reg, prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "storefront_stream_produce_flush_records", Help: "Records sent in one flush.", Buckets: prometheus.ExponentialBuckets(1, 2, 12),
			NativeHistogramBucketFactor: 1.1, NativeHistogramMaxBucketNumber: 100,
		}, []string{"topic"})).WithLabelValues(topic),
		seconds: register(reg, prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "storefront_stream_produce_flush_seconds", Help: "Time from sending a flush to its answer.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5}, NativeHistogramBucketFactor: 1.1, NativeHistogramMaxBucketNumber: 100,
		}, []string{"topic"})).WithLabelValues(topic),
		retries: register(reg, prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "storefront_stream_produce_retries_total", Help: "Flushes tried a second time on another partition.",
		}, []string{"topic"})).WithLabelValues(topic),
	}
	for _, o := range []Outcome{Unknown, Acknowledged, Refused} {
		m.outcomes[o] = outcomes.WithLabelValues(topic, o.String())
	}
	return m
}

// register returns the collector that serves under c's name: c, or the one that was there. A nil Registerer keeps it private.
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
