package outbound

import (
	"context"
	"math"
	"runtime/debug"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/semaphore"
)

// MinBudget is the least budget: four times the largest body.
const MinBudget = 4 * DefaultMaxBody

// DefaultBudget is a tenth of the runtime's memory limit (GOMEMLIMIT), at least MinBudget.
func DefaultBudget() int64 {
	limit := debug.SetMemoryLimit(-1) // only reads it
	if limit == math.MaxInt64 {
		return MinBudget
	}
	return max(limit/10, MinBudget)
}

// Metrics shows the use of the budget.
type Metrics struct {
	reserved prometheus.Gauge
	limit    prometheus.Gauge
	waits    prometheus.Counter
}

// NewMetrics registers the package's metrics.
func NewMetrics(r prometheus.Registerer) *Metrics {
	m := &Metrics{
		reserved: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "storefront_control_provider_response_bytes",
			Help: "Bytes that are reserved now for responses of providers that are read or decoded.",
		}),
		limit: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "storefront_control_provider_response_limit_bytes",
			Help: "The greatest value of storefront_control_provider_response_bytes: " +
				"CONTROL_PROVIDER_RESPONSE_BUDGET, or its default.",
		}),
		waits: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "storefront_control_provider_response_waits_total",
			Help: "Responses of providers that waited because the budget was used up.",
		}),
	}
	r.MustRegister(m.reserved, m.limit, m.waits)
	return m
}

// budget bounds the bytes of all responses that are being read or decoded.
type budget struct {
	size    int64
	bytes   *semaphore.Weighted
	metrics *Metrics
}

func newBudget(size int64, m *Metrics) *budget {
	if size <= 0 {
		size = DefaultBudget()
	}
	if m == nil {
		m = NewMetrics(prometheus.NewRegistry())
	}
	m.limit.Set(float64(size))
	return &budget{size: size, bytes: semaphore.NewWeighted(size), metrics: m}
}

// reservation is one response's part of the budget.
type reservation struct {
	budget *budget
	held   int64
}

// resize changes what is reserved. To grow it gives back everything first, so that it holds nothing while it
// waits and two reservations cannot wait for each other.
func (r *reservation) resize(ctx context.Context, n int64) error {
	n = min(n, r.budget.size)
	if n <= r.held {
		r.shrink(n)
		return nil
	}
	r.shrink(0)
	if !r.budget.bytes.TryAcquire(n) {
		r.budget.metrics.waits.Inc()
		if err := r.budget.bytes.Acquire(ctx, n); err != nil {
			return err
		}
	}
	r.held = n
	r.budget.metrics.reserved.Add(float64(n))
	return nil
}

func (r *reservation) shrink(n int64) {
	if freed := r.held - n; freed > 0 {
		r.held = n
		r.budget.bytes.Release(freed)
		r.budget.metrics.reserved.Sub(float64(freed))
	}
}
