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
