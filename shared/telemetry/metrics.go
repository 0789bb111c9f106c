package telemetry

import (
	"runtime"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// NewRegistry returns a registry with the collectors of the Go runtime, of the process, and of the build that
// runs.
func NewRegistry(service string) *prometheus.Registry {
	r := prometheus.NewRegistry()
	r.MustRegister(collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), buildInfo(service))
	return r
}

func buildInfo(service string) prometheus.Collector {
	v := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "storefront_build_info",
		Help: "Always 1; the labels name the service (component), its version (a tag or a commit) and the " +
			"Go version that built it.",
	}, []string{"component", "version", "go_version"})
	v.WithLabelValues(service, Version(), runtime.Version()).Set(1)
	return v
}
