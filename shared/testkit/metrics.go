package testkit

import (
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"

	"storefront.internal/shared/telemetry"
)

// CheckMetrics fails the test for each registered metric that breaks the conventions: those of promlint, the
// prefix storefront_, no label whose values grow with the number of customers or that a target has under the
// Prometheus operator, and native histograms.
func CheckMetrics(t testing.TB, register func(prometheus.Registerer)) {
	t.Helper()
	for _, problem := range metricProblems(register) {
		t.Error(problem)
	}
}

func metricProblems(register func(prometheus.Registerer)) (problems []string) {
	var families []*dto.MetricFamily
	for _, m := range telemetry.Describe(register) {
		if strings.HasPrefix(m.Name, "go_") || strings.HasPrefix(m.Name, "process_") {
			continue
		}
		family := &dto.MetricFamily{Name: &m.Name, Type: &m.Type, Metric: []*dto.Metric{{}}}
		if m.Help != "" {
			family.Help = &m.Help
		}
		families = append(families, family)
		if !strings.HasPrefix(m.Name, "storefront_") {
			problems = append(problems, m.Name+": does not begin with storefront_")
		}
		for _, label := range m.Labels {
			// whose stores are postgres and redis
			if slices.Contains(customerLabels(), label) && m.Name != "storefront_control_key_version" {
				problems = append(problems, m.Name+": the values of label "+label+
					" grow with the number of customers")
			}
			if slices.Contains(targetLabels(), label) {
				problems = append(problems, m.Name+": label "+label+
					" is one of the target under the Prometheus operator")
			}
		}
		if m.Type == dto.MetricType_HISTOGRAM && !isNative(m) {
			problems = append(problems, m.Name+": the histogram is not native")
		}
	}
	found, err := promlint.NewWithMetricFamilies(families).Lint()
	if err != nil {
		problems = append(problems, err.Error())
	}
	for _, p := range found {
		if strings.HasSuffix(p.Metric, "_partition_days_ahead") { // a number of daily partitions, not a time
			continue
		}
		problems = append(problems, p.Metric+": "+p.Text)
	}
	return problems
}

func customerLabels() []string {
	return []string{"connection_id", "connection", "store", "key_id", "path", "url", "item_id", "signal_id"}
}

// targetLabels are the labels of a target. A metric's label of the same name becomes exported_….
func targetLabels() []string {
	return []string{"job", "instance", "namespace", "pod", "container", "endpoint", "service", "node",
		"prometheus", "release", "cluster"}
}

// isNative makes a sample of the histogram; its schema tells.
func isNative(m telemetry.Metric) bool {
	var sample dto.Metric
	metric, ok := m.Collector.(prometheus.Metric)
	if vec, isVec := m.Collector.(*prometheus.HistogramVec); isVec {
		h, err := vec.GetMetricWithLabelValues(make([]string, len(m.Labels))...)
		if err != nil {
			return false
		}
		metric, ok = h.(prometheus.Metric)
	}
	return ok && metric.Write(&sample) == nil && sample.Histogram != nil && sample.Histogram.Schema != nil
}
