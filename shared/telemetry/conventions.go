package telemetry

import (
	"fmt"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// ConventionFaults names what of the registered metrics breaks our conventions, for a service's tests: names begin with storefront_, counters and nothing else end with _total, units are base units, no label grows with customers,
// and histograms are native too.
func ConventionFaults(register func(prometheus.Registerer)) []string {
	rec := &recorder{}
	register(rec)
	var faults []string
	for _, c := range rec.collectors {
		for _, d := range describe(c) {
			for _, fault := range conventionFaults(d, metricType(c, d.name)) {
				faults = append(faults, d.name+": "+fault)
			}
			if h := histogramOf(c, len(d.labels)); h != nil && h.Schema == nil {
				faults = append(faults, d.name+": the histogram is not native")
			}
		}
	}
	slices.Sort(faults)
	return faults
}

func conventionFaults(d description, kind string) []string {
	var faults []string
	complain := func(bad bool, text string) {
		if bad {
			faults = append(faults, text)
		}
	}
	complain(!strings.HasPrefix(d.name, "storefront_"), "does not begin with storefront_")
	complain(strings.HasSuffix(d.name, "_total") != (kind == "counter"), "only counters end with _total, and all do")
	for _, unit := range []string{"_ms", "_milliseconds", "_minutes", "_kb", "_mb", "_percent"} {
		complain(strings.HasSuffix(strings.TrimSuffix(d.name, "_total"), unit), unit+" is no base unit")
	}
	for _, label := range d.labels {
		complain(slices.Contains([]string{"connection_id", "connection", "store", "key_id", "path", "url", "item_id", "signal_id"}, label) && !slices.Contains(closedSets(), d.name),
			fmt.Sprintf("label %s grows with customers", label))
	}
	complain(strings.TrimSpace(d.help) == "", "has no help")
	return faults
}

// closedSets are the metrics whose label only sounds like a customer's: store is postgres or redis there.
func closedSets() []string { return []string{"storefront_control_key_version"} }

// histogramOf makes a series of a histogram and returns it, nil when c is none.
func histogramOf(c prometheus.Collector, labels int) *dto.Histogram {
	var sample dto.Metric
	switch c := c.(type) {
	case *prometheus.HistogramVec:
		h, err := c.GetMetricWithLabelValues(make([]string, labels)...)
		m, ok := h.(prometheus.Metric)
		if err != nil || !ok || m.Write(&sample) != nil {
			return nil
		}
	case prometheus.Histogram:
		if c.Write(&sample) != nil {
			return nil
		}
	}
	return sample.Histogram
}
