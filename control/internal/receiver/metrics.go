package receiver

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// outcome is what became of a webhook; a metric label.
type outcome string

const (
	taken       outcome = "taken"
	ping        outcome = "ping"
	unsigned    outcome = "unsigned"
	refused     outcome = "refused"
	malformed   outcome = "malformed"
	tooLarge    outcome = "too_large"
	limited     outcome = "limited"
	full        outcome = "full"
	unavailable outcome = "unavailable"
)

// Metrics are those of a Receiver.
type Metrics struct {
	webhooks *prometheus.CounterVec
	took     prometheus.Histogram
}

// NewMetrics registers the metrics.
func NewMetrics(r prometheus.Registerer) *Metrics {
	m := &Metrics{
		webhooks: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "storefront_receiver_webhooks_total",
			Help: "Webhooks at the public receiver, by provider and outcome (taken: control took it, ping, " +
				"unsigned, refused: control answered 401, malformed, too_large, limited: control answered " +
				"429, full: RECEIVER_BODY_BUDGET is in use, unavailable: control did not take it and the " +
				"provider tries again).",
		}, []string{"provider", "outcome"}),
		took: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "storefront_receiver_forward_seconds", Help: "Time until control answered a webhook.",
			Buckets:                     []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
			NativeHistogramBucketFactor: 1.1, NativeHistogramMaxBucketNumber: 100,
		}),
	}
	r.MustRegister(m.webhooks, m.took)
	return m
}

// expect makes the series of a provider before its first webhook, for rates.
func (m *Metrics) expect(provider string) {
	for _, o := range []outcome{taken, ping, unsigned, refused, malformed, tooLarge, limited, full,
		unavailable} {
		m.webhooks.WithLabelValues(provider, string(o))
	}
}

func (m *Metrics) count(provider string, o outcome) {
	m.webhooks.WithLabelValues(provider, string(o)).Inc()
}

func (m *Metrics) forwarded(took time.Duration) { m.took.Observe(took.Seconds()) }

// Watch registers how many bytes of bodies the receiver holds; nil: for the reference.
func (r *Receiver) Watch(reg prometheus.Registerer) {
	reg.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "storefront_receiver_body_bytes",
		Help: "Bytes of the bodies that the receiver holds, of RECEIVER_BODY_BUDGET.",
	}, r.held))
}
