package httpapi

import (
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"storefront.internal/edge/internal/overload"
)

// Metrics are the metrics of the package.
type Metrics struct {
	duration     *prometheus.HistogramVec
	problems     *prometheus.CounterVec
	panics       prometheus.Counter
	shed         *prometheus.CounterVec
	authRefused  prometheus.Counter
	connErrors   prometheus.Counter
	connsRefused *prometheus.CounterVec

	mu     sync.RWMutex
	series map[outcome]prometheus.Observer // of duration: resolved once, because each request needs one
}

// outcome is the labels of a series of duration.
type outcome struct {
	operation string
	status    int
}

// NewMetrics registers the metrics.
func NewMetrics(r prometheus.Registerer) *Metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		v := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
		r.MustRegister(v)
		return v
	}
	m := &Metrics{
		series: map[outcome]prometheus.Observer{},
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "storefront_edge_http_request_duration_seconds",
			Help: "Time from the start of the handler to its answer, by operationId (also preflight, " +
				"unknown, unread) and status.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5,
				10},
			NativeHistogramBucketFactor: 1.1, NativeHistogramMaxBucketNumber: 100,
		}, []string{"operation", "code"}),
		problems: counter("storefront_edge_http_problems_total",
			"Problems answered, by operationId and problem code.", "operation", "problem"),
		panics: counter("storefront_edge_http_panics_total",
			"Panics of handlers, answered 500. Every one is a defect.").WithLabelValues(),
		shed: counter("storefront_edge_http_shed_total",
			"Requests refused with 503 because of overload, by reason (in_flight: the queue is full, "+
				"waited: "+
				"the wait was too long, body_bytes) and by priority (impressions first, sales last).",
			"reason", "class"),
		authRefused: counter("storefront_edge_http_guesses_refused_total",
			"Requests refused with 429 because too many wrong keys came from their address.",
		).WithLabelValues(),
		connErrors: counter("storefront_edge_http_connection_errors_total",
			"Connections that ended in an error: reset, cut off, not HTTP.").WithLabelValues(),
		connsRefused: counter("storefront_edge_http_connections_refused_total",
			"Connections answered 503 or 429 and closed before a request was read, by reason (limit: "+
				"EDGE_MAX_CONNECTIONS are open, address: EDGE_MAX_CONNECTIONS_PER_ADDRESS of one address).",
			"reason"),
	}
	r.MustRegister(m.duration)
	for _, reason := range []string{tableFull, addressFull} { // panels show them before the first one
		m.connsRefused.WithLabelValues(reason)
	}
	for _, reason := range []overload.Reason{overload.QueueFull, overload.BodyBytes, overload.TimedOut} {
		for _, p := range []overload.Priority{overload.Sheddable, overload.Normal, overload.Critical} {
			m.shed.WithLabelValues(string(reason), p.String())
		}
	}
	return m
}

func (m *Metrics) observe(operation string, status int, took time.Duration) {
	o := outcome{operation, status}
	m.mu.RLock()
	observer, found := m.series[o]
	m.mu.RUnlock()
	if !found {
		observer = m.duration.WithLabelValues(operation, strconv.Itoa(status))
		m.mu.Lock()
		m.series[o] = observer
		m.mu.Unlock()
	}
	observer.Observe(took.Seconds())
}

// Watch registers how much of the limits is used.
func (s *Server) Watch(r prometheus.Registerer) {
	gauge := func(name, help string, f func() int) {
		r.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help},
			func() float64 { return float64(f()) }))
	}
	gauge("storefront_edge_http_in_flight", "Requests in flight, without catalog reads.",
		func() int { return s.workLimiter.State().InFlight })
	gauge("storefront_edge_http_waiting", "Requests that wait for a permit, without catalog reads.",
		func() int { return s.workLimiter.State().Waiting })
	gauge("storefront_edge_http_catalog_in_flight", "Catalog reads in flight; they have their own limit.",
		func() int { return s.readLimiter.State().InFlight })
	gauge("storefront_edge_http_in_flight_bytes", "Bytes of the bodies in flight or waiting.",
		func() int { return s.workLimiter.State().Bytes })
	gauge("storefront_edge_http_reserved_body_bytes",
		"Bytes of the bodies that are being read or in work, as declared; 256 KiB for a chunked one.",
		func() int { return int(s.bodies.used.Load()) })
	gauge("storefront_edge_http_connections", "Open connections.",
		func() int { return int(s.conns.count.Load()) })
	gauge("storefront_edge_http_max_connections", "The greatest number of open connections.",
		func() int { return s.conns.max })
}
