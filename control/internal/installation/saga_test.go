package installation_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"storefront.internal/control/internal/installation"
	"storefront.internal/control/internal/provider"
	"storefront.internal/shared/ident"
)

func TestSagaCompletes(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	got := b.install("app")
	if again, err := b.runner.Run(t.Context(), got.InstallationID, 1); err != nil || again != 0 {
		t.Fatalf("%v, %v", again, err)
	}
	b.whole()
	if b.state() != "completed 0 f" || b.loads.opened != 1 || b.stub.token != accessToken {
		t.Errorf("%s, %d loads", b.state(), b.loads.opened)
	}
	calls := b.stub.calls
	if again, err := b.runner.Run(t.Context(), got.InstallationID, 1); err != nil || again != 0 || b.stub.calls != calls {
		t.Errorf("an ended saga was worked: %v, %v", again, err)
	}
}

// errKilled stands for the end of the process: nothing of the runner happens after it.
var errKilled = errors.New("killed")

func (b *bundle) killedRun(id ident.InstallationID) (killed bool) {
	defer func() {
		if v := recover(); v != nil {
			err, ok := v.(error)
			if killed = ok && errors.Is(err, errKilled); !killed {
				panic(v)
			}
		}
	}()
	if _, err := b.runner.Run(b.t.Context(), id, 1); err != nil {
		b.t.Error(err)
	}
	return false
}

func TestSagaSurvivesADeathAtEveryCall(t *testing.T) {
	t.Parallel()
	f := func(place string, n int) (reached bool) {
		b := newBundle(t)
		got := b.install("app")
		kill := func(at int) func(int) error {
			return func(call int) error {
				if call == at {
					panic(errKilled)
				}
				return nil
			}
		}
		switch place {
		case "before":
			b.stub.fail = kill(n)
		case "after":
			b.stub.after = kill(n)
		case "load":
			b.loads.fail = func() error { panic(errKilled) }
		}
		reached = b.killedRun(got.InstallationID)
		b.stub.fail, b.stub.after, b.loads.fail = nil, nil, nil
		if reached {
			if b.killedRun(got.InstallationID); !strings.HasSuffix(b.state(), "t") {
				t.Errorf("%s %d: the lease of the dead was taken: %s", place, n, b.state())
			}
			b.exec(`UPDATE control.installations SET lease_until = now() - interval '1 second', due_at = now() - interval '1 minute'`)
			if woken, err := b.store.WakeSagas(t.Context(), 15*time.Second); err != nil || woken != 1 {
				t.Errorf("%s %d: woken %d, %v", place, n, woken, err)
			}
			if woken, err := b.store.WakeSagas(t.Context(), 15*time.Second); err != nil || woken != 0 {
				t.Errorf("%s %d: woken again %d, %v", place, n, woken, err)
			}
			b.killedRun(got.InstallationID)
		}
		b.whole()
		if b.state() != "completed 0 f" || b.loads.opened != 1 || b.stub.made != len(b.stub.topics) {
			t.Errorf("%s %d: %s, %d loads, %d made", place, n, b.state(), b.loads.opened, b.stub.made)
		}
		return reached
	}
	for _, place := range []string{"before", "after"} {
		n := 1
		for f(place, n) {
			n++
		}
		if n != 5 { // one list and three that were made
			t.Errorf("%s: %d calls were reached", place, n-1)
		}
	}
	if !f("load", 1) {
		t.Error("the load was not reached")
	}
}

func TestSagaShowsItsFailureAndEnds(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	got := b.install("app")
	due := func() { b.exec(`UPDATE control.installations SET due_at = now()`) }
	b.stub.fail = func(int) error { return &provider.Throttled{RetryAfter: 90 * time.Second} }
	if again, err := b.runner.Run(t.Context(), got.InstallationID, 1); err != nil || again != 90*time.Second || b.state() != "opened throttled 1 f" {
		t.Errorf("throttled: %v, %v, %s", again, err, b.state())
	}
	calls := b.stub.calls
	if again, err := b.runner.Run(t.Context(), got.InstallationID, 1); err != nil || again != 0 || b.stub.calls != calls {
		t.Errorf("an attempt before it was due: %v, %v", again, err)
	}
	due()
	b.stub.fail = func(int) error { return &provider.Refused{Status: 401} }
	for range 2 {
		due()
		if _, err := b.runner.Run(t.Context(), got.InstallationID, 1); err != nil {
			t.Fatal(err)
		}
	}
	if b.state() != "failed credential_refused 3 f" {
		t.Errorf("refused: %s", b.state())
	}
	view, err := b.service.Connection(t.Context(), got.ConnectionID)
	if err != nil || view.Installation.State != installation.StateFailed || view.Installation.Reason != "credential_refused" {
		t.Errorf("shown: %+v, %v", view, err)
	}
	b.stub.fail = nil
	again := b.install("app-2")
	if _, err := b.runner.Run(t.Context(), got.InstallationID, 1); err != nil || b.state() != "opened 0 f" {
		t.Errorf("an older epoch: %v, %s", err, b.state())
	}
	if _, err := b.runner.Run(t.Context(), again.InstallationID, 2); err != nil || b.state() != "completed 0 f" {
		t.Errorf("installed again: %v, %s", err, b.state())
	}
	b.whole()
	if strings.Contains(b.log.String(), "canary") {
		t.Errorf("a canary is in the log: %s", b.log)
	}
}

func TestAReinstallationTakesTheLeaseAway(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	got := b.install("app")
	b.stub.after = func(call int) error {
		if call == 2 { // the store is installed again while its subscriptions are made
			b.install("app")
		}
		return nil
	}
	if again, err := b.runner.Run(t.Context(), got.InstallationID, 1); err != nil || again != 0 {
		t.Errorf("%v, %v", again, err)
	}
	if b.stub.calls != 2 || b.state() != "opened 0 f" || b.loads.opened != 0 {
		t.Errorf("%d calls, %s", b.stub.calls, b.state())
	}
	b.stub.after = nil
	if _, err := b.runner.Run(t.Context(), got.InstallationID, 2); err != nil || b.state() != "completed 0 f" {
		t.Errorf("%v, %s", err, b.state())
	}
	b.whole()
}

func TestAClosedShopEndsItsSaga(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	got := b.install("app")
	b.exec(`DELETE FROM control.credentials`)
	if again, err := b.runner.Run(t.Context(), got.InstallationID, 1); err != nil || again != 0 || b.state() != "failed store_closed 1 f" {
		t.Errorf("%v, %v, %s", again, err, b.state())
	}
}
