package httpapi

import (
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics are the figures of the package.
type Metrics struct {
	duration *prometheus.HistogramVec
	problems *prometheus.CounterVec
	panics   prometheus.Counter
	shed     *prometheus.CounterVec
	guesses  prometheus.Counter
	server   prometheus.Counter

	mu    sync.RWMutex
	known map[outcome]prometheus.Observer // series of duration, which every request needs
}

// outcome names a series of duration.
type outcome struct {
	operation string
	status    int
}

// NewMetrics registers the figures.
func NewMetrics(r prometheus.Registerer) *Metrics {
	m := &Metrics{known: map[outcome]prometheus.Observer{},
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "storefront_edge_http_request_duration_seconds",
			Help:                        "Time from the start of the handler to its answer, by operationId (also preflight, unknown, unread) and status.",
			Buckets:                     []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
			NativeHistogramBucketFactor: 1.1, NativeHistogramMaxBucketNumber: 100}, []string{"operation", "code"}),
		problems: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "storefront_edge_http_problems_total",
			Help: "Problems that were answered, by operationId and problem code."}, []string{"operation", "problem"}),
		panics: prometheus.NewCounter(prometheus.CounterOpts{Name: "storefront_edge_http_panics_total",
			Help: "Panics of handlers, answered 500. Every one is a defect."}),
		shed: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "storefront_edge_http_shed_total",
			Help: "Requests refused with 503 because there was no room for them, by reason and by how dear they were: in_flight (the queue is full), predicted_wait, waited, displaced (by a dearer one), body_bytes."},
			[]string{"reason", "class"}),
		guesses: prometheus.NewCounter(prometheus.CounterOpts{Name: "storefront_edge_http_guesses_refused_total",
			Help: "Requests refused with 429 because wrong keys came from their address too often."}),
		server: prometheus.NewCounter(prometheus.CounterOpts{Name: "storefront_edge_http_connection_errors_total",
			Help: "Connections that ended in an error: reset, cut off, not HTTP."}),
	}
	r.MustRegister(m.duration, m.problems, m.panics, m.shed, m.guesses, m.server)
	return m
}

func (m *Metrics) observe(operation string, status int, took time.Duration) {
	o := outcome{operation, status}
	m.mu.RLock()
	series, found := m.known[o]
	m.mu.RUnlock()
	if !found {
		series = m.duration.WithLabelValues(operation, strconv.Itoa(status))
		m.mu.Lock()
		m.known[o] = series
		m.mu.Unlock()
	}
	series.Observe(took.Seconds())
}

// Watch registers what is in work now.
func (s *Server) Watch(r prometheus.Registerer) {
	gauge := func(name, help string, f func() float64) {
		r.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, f))
	}
	gauge("storefront_edge_http_in_flight", "Requests in work, without reads of the catalog.", func() float64 { return float64(s.turns.State().Working) })
	gauge("storefront_edge_http_waiting", "Requests that wait for their turn, without reads of the catalog.", func() float64 { return float64(s.turns.State().Waiting) })
	gauge("storefront_edge_http_catalog_in_flight", "Reads of the catalog in work; they have a limit of their own.",
		func() float64 { return float64(s.reads.State().Working) })
	gauge("storefront_edge_http_in_flight_bytes", "Bytes of bodies in work or waiting.", func() float64 { return float64(s.turns.State().Bytes) })
	gauge("storefront_edge_http_connections", "Open connections.", func() float64 { return float64(s.http.GetOpenConnectionsCount()) })
}
