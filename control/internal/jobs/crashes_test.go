package jobs

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/riverqueue/river/rivertype"

	"storefront.internal/shared/ident"
)

// heldJobs notes what is held.
type heldJobs []string

func (h *heldJobs) HoldConnection(_ context.Context, c ident.ConnectionID, run ident.RunID,
	i ident.InstallationID, _ string) (ident.ConnectionID, error) {
	*h = append(*h, string(c)+string(run)+string(i))
	return "con_1", nil
}

// crashed is a job with crashes of these ages, oldest first, between ordinary errors.
func crashed(kind, args string, ages ...time.Duration) *rivertype.JobRow {
	job := &rivertype.JobRow{Kind: kind, EncodedArgs: []byte(args)}
	for _, age := range ages {
		job.Errors = append(job.Errors, rivertype.AttemptError{Error: "timeout", At: time.Now().Add(-age)},
			rivertype.AttemptError{Error: rescuedError, At: time.Now().Add(-age)})
	}
	return job
}

func TestJobsThatCrashAreParked(t *testing.T) {
	t.Parallel()
	const minute = time.Minute
	f := func(job *rivertype.JobRow, want string, wantHeld ...string) {
		t.Helper()
		var held heldJobs
		m := NewMetrics(prometheus.NewRegistry())
		g := newCrashGuard(&held, m, slog.New(slog.DiscardHandler))
		ran := false
		err := g.Work(t.Context(), job, func(context.Context) error { ran = true; return nil })
		if got := outcome(err); got != want || ran != (want == "done") {
			t.Errorf("%s: %s, ran %v, want %s", job.Kind, got, ran, want)
		}
		if len(held) != len(wantHeld) || len(held) == 1 && held[0] != wantHeld[0] {
			t.Errorf("%s: held %v, want %v", job.Kind, held, wantHeld)
		}
		parked := 0.0
		if !ran {
			parked = 1
		}
		if n := testutil.ToFloat64(m.parked.WithLabelValues(job.Kind)); n != parked {
			t.Errorf("%s: %v are counted as parked", job.Kind, n)
		}
	}
	f(crashed("entity_refresh", `{"connection_id":"con_1"}`), "done")
	f(crashed("entity_refresh", `{"connection_id":"con_1"}`, 40*minute, minute), "done")
	f(crashed("entity_refresh", `{"connection_id":"con_1"}`, 61*minute, 10*minute, minute), "done")
	f(crashed("entity_refresh", `{"connection_id":"con_1"}`, 30*minute, 10*minute, minute), "cancelled", "con_1")
	f(crashed("bootstrap_load", `{"bootstrap_run_id":"bsr_1"}`, 3, 2, 1), "cancelled", "bsr_1")
	f(crashed("installation_saga", `{"installation_id":"ins_1","epoch":2}`, 3, 2, 1), "cancelled", "ins_1")
	f(crashed("item_push", `{"connection_id":"con_1"}`, 3, 2, 1), "later")
	f(crashed("privacy_request", `{"privacy_request_id":"whd_1"}`, 3, 2, 1), "later")
}

func TestJobsThatCrashedRunAlone(t *testing.T) {
	t.Parallel()
	g := newCrashGuard(nil, NewMetrics(prometheus.NewRegistry()), slog.New(slog.DiscardHandler))
	work := func(job *rivertype.JobRow, do func(context.Context) error) string {
		return outcome(g.Work(t.Context(), job, do))
	}
	idle := func(context.Context) error { return nil }
	suspect := crashed("catch_up", `{}`, time.Minute)
	got := work(suspect, func(context.Context) error {
		if got := work(suspect, idle); got != "later" {
			t.Errorf("a second one that crashed: %s", got)
		}
		for _, free := range []*rivertype.JobRow{crashed("catch_up", `{}`), crashed("catch_up", `{}`, 16*time.Minute)} {
			if got := work(free, idle); got != "done" {
				t.Errorf("one that did not crash lately: %s", got)
			}
		}
		return errors.New("away")
	})
	if got != "failed" {
		t.Errorf("the first: %s", got)
	}
	if got := work(suspect, idle); got != "done" {
		t.Errorf("after the first: %s", got)
	}
}

func TestEveryKindThatIsParkedHasItsSeries(t *testing.T) {
	t.Parallel()
	m := NewMetrics(prometheus.NewRegistry())
	if n := testutil.CollectAndCount(m.parked); n != len(kinds()) || n < 16 {
		t.Errorf("%d series", n)
	}
}
