package deliver

import (
	"errors"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"storefront.internal/shared/clock"
	"storefront.internal/shared/deliveries"
	"storefront.internal/shared/heavyhitters"
)

// metrics are the figures of delivery (METRICS.md). Labels are closed sets.
type metrics struct {
	deliveries *prometheus.CounterVec   // by outcome
	requests   *prometheus.CounterVec   // by answer
	seconds    *prometheus.HistogramVec // of a request
	batch      *prometheus.HistogramVec // deliveries in a request
	delay      *prometheus.HistogramVec // from queued to confirmed
	fenced     prometheus.Counter       // leases that expired before they were completed
	top        *heavyhitters.Tracker    // deliveries by connection
}

func newMetrics(reg prometheus.Registerer, w *Worker) *metrics {
	m := &metrics{
		top: w.cfg.Top,
		deliveries: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "storefront_engine_delivery_total",
			Help: "Deliveries by kind and outcome: delivered, died (dead-lettered), " +
				"failed (to be retried), unconfirmed (sent without an answer; also counted as failed).",
		}, []string{"kind", "outcome"}),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "storefront_engine_request_total",
			Help: "Requests to the engine by kind and answer: " +
				"not_sent, unanswered, 401, 429, or the class of the status.",
		}, []string{"kind", "answer"}),
		seconds: histogram("request_seconds",
			"Time from sending a request to the engine to its complete answer.",
			.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10),
		batch: histogram("request_deliveries", "Deliveries per request.", 1, 5, 20, 50, 100, 199, 200),
		delay: histogram("delivery_delay_seconds",
			"Time from queueing a delivery to the engine's confirmation.",
			.05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 1800, 3600),
		fenced: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "storefront_engine_lease_lost_total",
			Help: "Leases that expired before they were completed.",
		}),
	}
	if reg != nil {
		reg.MustRegister(m.deliveries, m.requests, m.seconds, m.batch, m.delay, m.fenced,
			newQueueCollector(w))
	}
	for _, k := range kinds() { // series that alerts use exist from the start
		for _, outcome := range []string{"delivered", "died", "failed", "unconfirmed"} {
			m.deliveries.WithLabelValues(k.String(), outcome)
		}
		m.delay.WithLabelValues(k.String())
	}
	return m
}

func histogram(name, help string, buckets ...float64) *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "storefront_engine_" + name, Help: help, Buckets: buckets,
		NativeHistogramBucketFactor: 1.1, NativeHistogramMaxBucketNumber: 100,
	}, []string{"kind"})
}

// Loads are the loads that a worker counts by connection for /debug/top.
func Loads() []string { return []string{"delivered", "not_delivered"} }

func (m *metrics) completed(took time.Duration, c deliveries.Completion, done deliveries.Completed) {
	unconfirmed, k, now := 0, c.Lanes[0].Lease.Kind, clock.Now()
	delay := m.delay.WithLabelValues(k.String())
	for _, lane := range c.Lanes {
		if slices.Contains(done.Lost, lane.Lease) {
			continue
		}
		waited := make(map[int64]time.Duration, len(lane.Lease.Entries))
		for _, e := range lane.Lease.Entries {
			waited[e.Seq] = e.Waited
		}
		delivered := 0
		for _, o := range lane.Outcomes {
			if o.Unconfirmed {
				unconfirmed++
			}
			if o.Status == deliveries.Delivered {
				delivered++
				delay.Observe((waited[o.Seq] + took).Seconds())
			}
		}
		m.top.Add(now, string(lane.Lease.ConnectionID), delivered, len(lane.Outcomes)-delivered)
	}
	for outcome, n := range map[string]int{
		"delivered": done.Delivered, "died": done.DeadLettered,
		"failed": done.Failed, "unconfirmed": unconfirmed,
	} {
		if n > 0 {
			m.deliveries.WithLabelValues(k.String(), outcome).Add(float64(n))
		}
	}
}

func (m *metrics) request(k deliveries.Kind, r Reply, size int, took time.Duration) {
	m.requests.WithLabelValues(k.String(), answerLabel(r)).Inc()
	m.seconds.WithLabelValues(k.String()).Observe(took.Seconds())
	m.batch.WithLabelValues(k.String()).Observe(float64(size))
}

func answerLabel(r Reply) string {
	switch r.Transmission {
	case NotSent:
		return "not_sent"
	case Unanswered:
		return "unanswered"
	}
	switch {
	case r.Status == 401:
		return "401"
	case r.Status == 429:
		return "429"
	case r.Status >= 500:
		return "5xx"
	case r.Status >= 400:
		return "4xx"
	case r.Status >= 300:
		return "3xx"
	default:
		return "2xx"
	}
}

// spanError is the error of the request's span, nil after a 2xx.
func (r Reply) spanError() error {
	if kind := answerLabel(r); kind != "2xx" {
		return errors.New(kind)
	}
	return nil
}
