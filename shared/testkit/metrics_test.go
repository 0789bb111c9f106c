package testkit

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

func TestMetricProblems(t *testing.T) {
	t.Parallel()
	native := prometheus.HistogramOpts{Name: "storefront_x_seconds", Help: "h",
		NativeHistogramBucketFactor: 1.1}
	f := func(want string, c prometheus.Collector) {
		t.Helper()
		got := strings.Join(metricProblems(func(r prometheus.Registerer) { r.MustRegister(c) }), "; ")
		if want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	f("", prometheus.NewHistogram(native))
	f("", prometheus.NewHistogramVec(native, []string{"operation", "code"}))
	f("", prometheus.NewCounter(prometheus.CounterOpts{Name: "storefront_x_total", Help: "h"}))
	f("begin with", prometheus.NewGauge(prometheus.GaugeOpts{Name: "x", Help: "h"}))
	f("non-counter metrics should not have",
		prometheus.NewGauge(prometheus.GaugeOpts{Name: "storefront_x_total", Help: "h"}))
	f("counter metrics should have",
		prometheus.NewCounter(prometheus.CounterOpts{Name: "storefront_x", Help: "h"}))
	f("abbreviated units", prometheus.NewGauge(prometheus.GaugeOpts{Name: "storefront_x_ms", Help: "h"}))
	f("grow with", prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "storefront_x", Help: "h"},
		[]string{"connection_id"}))
	f("not native", prometheus.NewHistogram(prometheus.HistogramOpts{Name: "storefront_x_seconds",
		Help: "h"}))
	f("not native", prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "storefront_x_seconds",
		Help: "h"}, []string{"a"}))
	f("no help text", prometheus.NewGauge(prometheus.GaugeOpts{Name: "storefront_x"}))
}
