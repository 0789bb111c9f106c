package storekeys

import "github.com/prometheus/client_golang/prometheus"

// Metrics counts pushes and shows the key versions.
type Metrics struct {
	pushes  *prometheus.CounterVec
	version *prometheus.GaugeVec
	back    prometheus.Counter
	again   prometheus.Counter
}

// NewMetrics registers the package's metrics.
func NewMetrics(r prometheus.Registerer) *Metrics {
	m := &Metrics{
		pushes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "storefront_control_key_pushes_total",
			Help: "Pushes of a storefront key's state to Redis, by result (ok, failed).",
		}, []string{"result"}),
		version: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "storefront_control_key_version",
			Help: "Key version up to which every change was pushed (store postgres), and the one in Redis " +
				"(store redis).",
		}, []string{"store"}),
	}
	m.back = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "storefront_control_key_version_went_back_total",
		Help: "Times that PostgreSQL had an earlier key version than Redis: it was restored to an earlier " +
			"time, or failed over to a standby that was behind.",
	})
	m.again = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "storefront_control_keys_revoked_again_total",
		Help: "Keys whose revocation PostgreSQL had lost, and that were revoked again because Redis " +
			"remembered it.",
	})
	r.MustRegister(m.pushes, m.version, m.back, m.again)
	for _, result := range []string{"ok", "failed"} {
		m.pushes.WithLabelValues(result)
	}
	return m
}

func (m *Metrics) pushed(err error) {
	result := "ok"
	if err != nil {
		result = "failed"
	}
	m.pushes.WithLabelValues(result).Inc()
}

func (m *Metrics) wentBack(revokedAgain int) {
	m.back.Inc()
	m.again.Add(float64(revokedAgain))
}

func (m *Metrics) versions(postgres, redis int64) {
	m.version.WithLabelValues("postgres").Set(float64(postgres))
	m.version.WithLabelValues("redis").Set(float64(redis))
}
