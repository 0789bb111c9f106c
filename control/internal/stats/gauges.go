package stats

import "github.com/prometheus/client_golang/prometheus"

// gauges are registered together and left out together. Also those without labels are vectors, so that they
// can be left out.
type gauges struct {
	registerer prometheus.Registerer
	prefix     string // of every name
	all        []*prometheus.GaugeVec
}

func (g *gauges) add(name, help string, labels ...string) *prometheus.GaugeVec {
	v := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: g.prefix + name, Help: help}, labels)
	g.registerer.MustRegister(v)
	g.all = append(g.all, v)
	return v
}

// reset leaves all out until they are set again.
func (g *gauges) reset() {
	for _, v := range g.all {
		v.Reset()
	}
}
