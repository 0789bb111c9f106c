package stream

import (
	"context"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"storefront.internal/shared/testkit"
)

// readGauges reads the gauges of a registry: the sum and the number of series by name.
func readGauges(t *testing.T, g prometheus.Gatherer) (sums map[string]float64, series map[string]int) {
	t.Helper()
	families, err := g.Gather()
	if err != nil {
		t.Fatal(err)
	}
	sums, series = map[string]float64{}, map[string]int{}
	for _, f := range families {
		if f.GetType() != dto.MetricType_GAUGE {
			continue
		}
		for _, m := range f.Metric {
			sums[f.GetName()] += m.Gauge.GetValue()
			series[f.GetName()]++
		}
	}
	return sums, series
}

// TestLagIsMeasuredAtTheBroker: without a consumer of this process, and with partitions without a committed
// offset.
func TestLagIsMeasuredAtTheBroker(t *testing.T) {
	t.Parallel()
	brokers, topic, group := testkit.Kafka(t), testkit.Topic(t, 3), testkit.Name("g")
	const lag, oldest, up = "storefront_relay_consumer_lag_records",
		"storefront_relay_oldest_unread_seconds", "storefront_relay_lag_up"
	produce(t, brokers, topic, "a", 30)
	registry := prometheus.NewRegistry()
	l := NewLag(LagConfig{Brokers: brokers, Group: group, Topics: []string{topic},
		Every: 50 * time.Millisecond, Registerer: registry,
		Now: func() time.Time { return time.Now().Add(time.Hour) }})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- l.Run(ctx) }()
	awaitGauges := func(what string, ok func(sums map[string]float64, series map[string]int) bool) {
		t.Helper()
		await(t, what, func() bool { return ok(readGauges(t, registry)) })
	}
	awaitGauges("nothing is committed", func(sums map[string]float64, series map[string]int) bool {
		return sums[up] == 1 && sums[lag] == 30 && series[lag] == 3 && sums[oldest] >= 3600 &&
			sums[oldest] < 7200
	})

	stop := start(t, consumerConfig(brokers, group, topic), newStore().handle)
	awaitGauges("all is stored", func(sums map[string]float64, series map[string]int) bool {
		return sums[lag] == 0 && series[lag] == 3 && sums[oldest] == 0
	})
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	produce(t, brokers, topic, "b", 20)
	awaitGauges("the consumer is gone",
		func(sums map[string]float64, _ map[string]int) bool {
			return sums[lag] == 20 &&
				sums[oldest] >= 3600
		})

	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if sums, series := readGauges(t, registry); sums[up] != 0 || series[lag] != 0 || series[oldest] != 0 {
		t.Errorf("what is not known is shown: %v", sums)
	}
}

// TestLagIsUnknownWithoutABroker leaves the lag metrics out.
func TestLagIsUnknownWithoutABroker(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	l := NewLag(LagConfig{Brokers: []string{"127.0.0.1:1"}, Group: "g", Topics: []string{"t"},
		Registerer: registry})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := l.Run(ctx); err != nil {
		t.Fatal(err)
	}
	sums, series := readGauges(t, registry)
	if series["storefront_relay_lag_up"] != 1 || sums["storefront_relay_lag_up"] != 0 ||
		series["storefront_relay_oldest_unread_seconds"] != 0 {
		t.Errorf("%v", sums)
	}
}
