package jobs

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"
)

func TestEveryOutcomeOfAJobIsCounted(t *testing.T) {
	t.Parallel()
	r := prometheus.NewRegistry()
	m := &measure{metrics: NewMetrics(r)}
	f := func(want string, work func(context.Context) error) {
		t.Helper()
		before := testutil.CollectAndCount(m.metrics.seconds)
		func() {
			defer func() { _ = recover() }()
			if err := m.Work(t.Context(), &rivertype.JobRow{Kind: "k"}, work); outcome(err) != want {
				t.Errorf("got %v", err)
			}
		}()
		if _, err := m.metrics.seconds.GetMetricWithLabelValues("k", want); err != nil ||
			testutil.CollectAndCount(m.metrics.seconds) != before+1 {
			t.Errorf("%s is not counted", want)
		}
	}
	f("done", func(context.Context) error { return nil })
	f("later", func(context.Context) error { return river.JobSnooze(time.Second) })
	f("cancelled", func(context.Context) error { return river.JobCancel(errors.New("no")) })
	f("failed", func(context.Context) error { return errors.New("away") })
	if n := testutil.ToFloat64(m.metrics.panics); n != 0 {
		t.Errorf("%v panics", n)
	}
	f("panicked", func(context.Context) error { panic("x") })
	if n := testutil.ToFloat64(m.metrics.panics); n != 1 {
		t.Errorf("%v panics, want 1", n)
	}
}

func TestTheWaitOfAJobIsMeasured(t *testing.T) {
	t.Parallel()
	r := prometheus.NewRegistry()
	m := &measure{metrics: NewMetrics(r)}
	due := time.Now()
	begun := due.Add(7 * time.Second)
	job := &rivertype.JobRow{Kind: "k", Queue: queueFirstLoad, ScheduledAt: due, AttemptedAt: &begun}
	if err := m.Work(t.Context(), job, func(context.Context) error { return nil }); err != nil {
		t.Fatal(err)
	}
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == "storefront_control_job_wait_seconds" {
			h := f.GetMetric()[0].GetHistogram()
			if h.GetSampleCount() != 1 || h.GetSampleSum() != 7 {
				t.Errorf("%d waits, %v s", h.GetSampleCount(), h.GetSampleSum())
			}
			return
		}
	}
	t.Error("no wait is measured")
}

func TestSettingsOfWorkers(t *testing.T) {
	t.Parallel()
	queues := Workers{CatchUps: 3}.queues()
	if queues[queueCatchUp].MaxWorkers != 3 || queues[queueFirstLoad].MaxWorkers != DefaultFirstLoads {
		t.Errorf("%+v", queues)
	}
}
