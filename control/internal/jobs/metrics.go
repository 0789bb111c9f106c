package jobs

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"
)

// Metrics measures jobs.
type Metrics struct {
	seconds *prometheus.HistogramVec
	waits   *prometheus.HistogramVec
	panics  prometheus.Counter
	parked  *prometheus.CounterVec
}

// NewMetrics registers the package's metrics.
func NewMetrics(r prometheus.Registerer) *Metrics {
	m := &Metrics{
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "storefront_control_job_duration_seconds",
			Help: "Run time of jobs, by kind and outcome (done, later: it snoozes, " +
				"cancelled, failed: it is tried again, panicked).",
			Buckets: []float64{.0025, .01, .025, .05, .1, .25, .5, 1, 2.5,
				5, 10, 30, 60, 240},
			NativeHistogramBucketFactor: 1.1, NativeHistogramMaxBucketNumber: 100,
		}, []string{"kind", "outcome"}),
		waits: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "storefront_control_job_wait_seconds",
			Help: "Time from when a job was due to when a worker began it, by queue. Of first_load: how " +
				"long new shops wait for their load.",
			Buckets:                     []float64{.1, .5, 1, 2.5, 5, 10, 30, 60, 300, 1800, 7200},
			NativeHistogramBucketFactor: 1.1, NativeHistogramMaxBucketNumber: 100,
		}, []string{"queue"}),
		panics: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "storefront_control_job_panics_total",
			Help: "Panics of jobs; each job is tried again. Every panic is a defect.",
		}),
		parked: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "storefront_control_jobs_parked_total",
			Help: "Jobs that were parked because their process died three times within an hour while " +
				"they ran. A shop's connection is disabled; other jobs wait for an hour.",
		}, []string{"kind"}),
	}
	for _, kind := range kinds() {
		m.parked.WithLabelValues(kind)
	}
	r.MustRegister(m.seconds, m.waits, m.panics, m.parked)
	return m
}

func (c *Config) middleware() []rivertype.Middleware {
	if c.Metrics == nil {
		return nil
	}
	return []rivertype.Middleware{&measure{metrics: c.Metrics},
		newCrashGuard(c.Holder, c.Metrics, c.Logger)}
}

// measure is River's middleware around each job.
type measure struct {
	river.MiddlewareDefaults
	metrics *Metrics
}

// Work implements rivertype.WorkerMiddleware. A panic goes on to River, which counts it as a failure.
func (m *measure) Work(ctx context.Context, job *rivertype.JobRow, work func(context.Context) error) error {
	begun, result := time.Now(), "panicked"
	if job.AttemptedAt != nil { // both times are PostgreSQL's
		waited := max(job.AttemptedAt.Sub(job.ScheduledAt), 0)
		m.metrics.waits.WithLabelValues(job.Queue).Observe(waited.Seconds())
	}
	defer func() {
		m.metrics.seconds.WithLabelValues(job.Kind, result).Observe(time.Since(begun).Seconds())
		if result == "panicked" {
			m.metrics.panics.Inc()
		}
	}()
	err := work(ctx)
	result = outcome(err)
	return err
}

func outcome(err error) string {
	var snooze *rivertype.JobSnoozeError
	var cancel *rivertype.JobCancelError
	switch {
	case err == nil:
		return "done"
	case errors.As(err, &snooze):
		return "later"
	case errors.As(err, &cancel):
		return "cancelled"
	default:
		return "failed"
	}
}
