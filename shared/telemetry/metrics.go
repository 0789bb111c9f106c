package telemetry

import (
	"fmt"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	dto "github.com/prometheus/client_model/go"
)

// NewRegistry returns a registry that already has the collectors of the Go runtime and of the process, and says which build of which service this is.
func NewRegistry(service string) *prometheus.Registry {
	r := prometheus.NewRegistry()
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), buildInfo(service))
	return r
}

func buildInfo(service string) prometheus.Collector {
	v := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "storefront_build_info", Help: "1 for the build that runs: the service, its version (a tag or a commit) and the Go that built it.",
	}, []string{"service", "version", "go_version"})
	v.WithLabelValues(service, Version(), runtime.Version()).Set(1)
	return v
}

// MetricsReference writes the Markdown table of every metric that register registers, sorted by name; METRICS.md holds it. It reads descriptions and not samples, since a metric with labels
// has none before its first use. The runtime's own metrics (go_, process_) are left out.
func MetricsReference(register func(prometheus.Registerer)) string {
	rec := &recorder{}
	rec.MustRegister(buildInfo(""))
	register(rec)
	rows := map[string]string{}
	for _, c := range rec.collectors {
		for _, d := range describe(c) {
			if !strings.HasPrefix(d.name, "go_") && !strings.HasPrefix(d.name, "process_") {
				rows[d.name] = fmt.Sprintf("| `%s` | %s | %s | %s |\n", d.name, metricType(c, d.name), labelText(d.labels), strings.ReplaceAll(d.help, "|", `\|`))
			}
		}
	}
	names := make([]string, 0, len(rows))
	for name := range rows {
		names = append(names, name)
	}
	slices.Sort(names)
	var b strings.Builder
	b.WriteString("| Metric | Type | Labels | Meaning |\n|---|---|---|---|\n")
	for _, name := range names {
		b.WriteString(rows[name])
	}
	return b.String()
}

func labelText(labels []string) string {
	if len(labels) == 0 {
		return ""
	}
	return "`" + strings.Join(labels, "`, `") + "`"
}

// recorder is a Registerer that remembers, and serves nothing.
type recorder struct {
	mu         sync.Mutex
	collectors []prometheus.Collector
}

// Register implements prometheus.Registerer.
func (r *recorder) Register(c prometheus.Collector) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.collectors = append(r.collectors, c)
	return nil
}

// MustRegister implements prometheus.Registerer.
func (r *recorder) MustRegister(cs ...prometheus.Collector) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.collectors = append(r.collectors, cs...)
}

// Unregister implements prometheus.Registerer.
func (r *recorder) Unregister(prometheus.Collector) bool { return false }

type description struct {
	name, help string
	labels     []string
}

// descText is how a prometheus.Desc prints; it has no accessors.
var descText = regexp.MustCompile(`^Desc\{fqName: "(.*?)", help: "((?:[^"\\]|\\.)*)",.* constLabels: \{(.*?)\}, variableLabels: \{(.*?)\}\}$`)

func describe(c prometheus.Collector) []description {
	ch := make(chan *prometheus.Desc)
	go func() {
		defer close(ch)
		c.Describe(ch)
	}()
	var out []description
	for d := range ch {
		m := descText.FindStringSubmatch(d.String())
		if m == nil {
			continue
		}
		var labels []string
		for _, l := range strings.Split(m[4], ",") {
			if l = strings.TrimSpace(l); l != "" {
				labels = append(labels, l)
			}
		}
		out = append(out, description{name: m[1], help: strings.ReplaceAll(m[2], `\"`, `"`), labels: labels})
	}
	return out
}

// metricType asks the collector's Go type, and the name where the collector is the service's own.
func metricType(c prometheus.Collector, name string) string {
	switch c := c.(type) {
	case *prometheus.CounterVec:
		return "counter"
	case *prometheus.GaugeVec:
		return "gauge"
	case *prometheus.HistogramVec:
		return "histogram"
	case *prometheus.SummaryVec:
		return "summary"
	case prometheus.Metric:
		return sampleType(c)
	}
	if strings.HasSuffix(name, "_total") {
		return "counter"
	}
	return "gauge"
}

func sampleType(m prometheus.Metric) string {
	var sample dto.Metric
	if err := m.Write(&sample); err != nil {
		return "untyped"
	}
	switch {
	case sample.Counter != nil:
		return "counter"
	case sample.Gauge != nil:
		return "gauge"
	case sample.Histogram != nil:
		return "histogram"
	case sample.Summary != nil:
		return "summary"
	}
	return "untyped"
}
