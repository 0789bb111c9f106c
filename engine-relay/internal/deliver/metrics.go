package deliver

import (
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"storefront.internal/shared/deliveries"
)

// metrics are the delivery's figures (METRICS.md). Labels are closed sets.
type metrics struct {
	deliveries *prometheus.CounterVec   // deliveries by what a settlement made of them
	requests   *prometheus.CounterVec   // requests by what came back
	seconds    *prometheus.HistogramVec // how long a request took
	batch      *prometheus.HistogramVec // deliveries per request
	delay      *prometheus.HistogramVec // how old deliveries were when the engine confirmed them
	fenced     prometheus.Counter       // leases that expired before they were settled
}

func newMetrics(reg prometheus.Registerer, w *Worker) *metrics {
	m := &metrics{
		deliveries: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "storefront_engine_delivery_total",
			Help: "Deliveries by kind and outcome: delivered, died, failed (tried again), unconfirmed (sent and not answered; part of failed).",
		}, []string{"kind", "outcome"}),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "storefront_engine_request_total",
			Help: "Requests to the engine by kind and what came back: not_sent, unanswered, or the class of the status; 401 and 429 on their own.",
		}, []string{"kind", "answer"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:                        "storefront_engine_request_seconds",
			Help:                        "Time from sending a request to the engine to its whole answer.",
			Buckets:                     []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
			NativeHistogramBucketFactor: 1.1, NativeHistogramMaxBucketNumber: 100,
		}, []string{"kind"}),
		batch: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "storefront_engine_request_deliveries", Help: "Deliveries per request.", Buckets: []float64{1, 5, 20, 50, 100, 199, 200},
			NativeHistogramBucketFactor: 1.1, NativeHistogramMaxBucketNumber: 100,
		}, []string{"kind"}),
		delay: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "storefront_engine_delivery_delay_seconds", Help: "Time from a delivery's being queued to the engine's confirmation.",
			Buckets:                     []float64{.05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 1800, 3600},
			NativeHistogramBucketFactor: 1.1, NativeHistogramMaxBucketNumber: 100,
		}, []string{"kind"}),
		fenced: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "storefront_engine_lease_lost_total", Help: "Leases that expired before they were settled.",
		}),
	}
	if reg != nil {
		reg.MustRegister(m.deliveries, m.requests, m.seconds, m.batch, m.delay, m.fenced, newGauges(w))
	}
	for _, k := range kinds() { // what alerts look at is there before it happens
		for _, outcome := range []string{"delivered", "died", "failed", "unconfirmed"} {
			m.deliveries.WithLabelValues(k.String(), outcome)
		}
		m.delay.WithLabelValues(k.String())
	}
	return m
}

func (m *metrics) settled(l *deliveries.Lease, took time.Duration, st deliveries.Settlement, done deliveries.Settled) {
	unconfirmed, k := 0, l.Kind
	waited := make(map[int64]time.Duration, len(l.Entries))
	for _, e := range l.Entries {
		waited[e.Seq] = e.Waited
	}
	for _, o := range st.Outcomes {
		if o.Unconfirmed {
			unconfirmed++
		}
		if o.Fate == deliveries.Delivered {
			m.delay.WithLabelValues(k.String()).Observe((waited[o.Seq] + took).Seconds())
		}
	}
	for outcome, n := range map[string]int{
		"delivered": done.Delivered, "died": done.Died, "failed": done.Failed, "unconfirmed": unconfirmed,
	} {
		if n > 0 {
			m.deliveries.WithLabelValues(k.String(), outcome).Add(float64(n))
		}
	}
}

func (m *metrics) request(k deliveries.Kind, r Reply, size int, took time.Duration) {
	m.requests.WithLabelValues(k.String(), answer(r)).Inc()
	m.seconds.WithLabelValues(k.String()).Observe(took.Seconds())
	m.batch.WithLabelValues(k.String()).Observe(float64(size))
}

func answer(r Reply) string {
	switch r.Sent {
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

// failure is what a request's span is told: that there was no good answer.
func (r Reply) failure() error {
	if kind := answer(r); kind != "2xx" {
		return errors.New(kind)
	}
	return nil
}
