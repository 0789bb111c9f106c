package telemetry

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// Metric describes one registered metric.
type Metric struct {
	Name, Help string
	Labels     []string
	Type       dto.MetricType
	Collector  prometheus.Collector
}

// Describe returns the metrics that register registers, sorted by name. It reads descriptions and not
// samples, since a metric with labels has no sample before its first use.
func Describe(register func(prometheus.Registerer)) []Metric {
	collectors := &collectorList{}
	register(collectors)
	byName := map[string]Metric{}
	for _, c := range *collectors {
		for _, m := range describe(c) {
			byName[m.Name] = m
		}
	}
	metrics := make([]Metric, 0, len(byName))
	for _, m := range byName {
		metrics = append(metrics, m)
	}
	slices.SortFunc(metrics, func(a, b Metric) int { return cmp.Compare(a.Name, b.Name) })
	return metrics
}

// MetricsReference returns the Markdown table of the metrics that register registers; METRICS.md holds it.
// The metrics of the Go runtime and of the process (go_, process_) are left out.
func MetricsReference(register func(prometheus.Registerer)) string {
	var b strings.Builder
	b.WriteString("| Metric | Type | Labels | Meaning |\n|---|---|---|---|\n")
	for _, m := range Describe(func(r prometheus.Registerer) { r.MustRegister(buildInfo("")); register(r) }) {
		if strings.HasPrefix(m.Name, "go_") || strings.HasPrefix(m.Name, "process_") {
			continue
		}
		labels := ""
		if len(m.Labels) > 0 {
			labels = "`" + strings.Join(m.Labels, "`, `") + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", m.Name, strings.ToLower(m.Type.String()), labels,
			strings.ReplaceAll(m.Help, "|", `\|`))
	}
	return b.String()
}

// collectorList is a prometheus.Registerer that only keeps what it is given.
type collectorList []prometheus.Collector

// Register implements prometheus.Registerer.
func (l *collectorList) Register(c prometheus.Collector) error {
	*l = append(*l, c)
	return nil
}

// MustRegister implements prometheus.Registerer.
func (l *collectorList) MustRegister(cs ...prometheus.Collector) { *l = append(*l, cs...) }

// Unregister implements prometheus.Registerer.
func (*collectorList) Unregister(prometheus.Collector) bool { return false }

// descText is the text of a prometheus.Desc, which has no accessors.
var descText = regexp.MustCompile(
	`^Desc\{fqName: "(.*?)", help: "((?:[^"\\]|\\.)*)",.* ` +
		`constLabels: \{(.*?)\}, variableLabels: \{(.*?)\}\}$`)

func describe(c prometheus.Collector) []Metric {
	descs := make(chan *prometheus.Desc)
	go func() {
		defer close(descs)
		c.Describe(descs)
	}()
	var metrics []Metric
	for d := range descs {
		match := descText.FindStringSubmatch(d.String())
		if match == nil {
			continue
		}
		m := Metric{Name: match[1], Help: strings.ReplaceAll(match[2], `\"`, `"`),
			Type: metricType(c, match[1]), Collector: c}
		for label := range strings.SplitSeq(match[4], ",") {
			if label = strings.TrimSpace(label); label != "" {
				m.Labels = append(m.Labels, label)
			}
		}
		metrics = append(metrics, m)
	}
	return metrics
}

// metricType takes the type from the collector, or from the name where the collector is the service's own.
func metricType(c prometheus.Collector, name string) dto.MetricType {
	switch c := c.(type) {
	case *prometheus.CounterVec:
		return dto.MetricType_COUNTER
	case *prometheus.GaugeVec:
		return dto.MetricType_GAUGE
	case *prometheus.HistogramVec:
		return dto.MetricType_HISTOGRAM
	case prometheus.Metric:
		return sampleType(c)
	}
	if strings.HasSuffix(name, "_total") {
		return dto.MetricType_COUNTER
	}
	return dto.MetricType_GAUGE
}

func sampleType(m prometheus.Metric) dto.MetricType {
	var sample dto.Metric
	switch err := m.Write(&sample); {
	case err != nil:
	case sample.Counter != nil:
		return dto.MetricType_COUNTER
	case sample.Gauge != nil:
		return dto.MetricType_GAUGE
	case sample.Histogram != nil:
		return dto.MetricType_HISTOGRAM
	}
	return dto.MetricType_UNTYPED
}
