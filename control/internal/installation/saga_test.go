package installation_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"storefront.internal/control/internal/installation"
	"storefront.internal/control/internal/provider"
)

func TestSagaCompletes(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	got := b.install("app")
	if snooze, err := b.run(got, 1); err != nil || snooze != 0 {
		t.Fatalf("%v, %v", snooze, err)
	}
	b.whole()
	if b.state() != "completed 0" || b.loads.opened != 1 || b.stub.token != accessToken {
		t.Errorf("%s, %d loads", b.state(), b.loads.opened)
	}
	calls := b.stub.calls
	if snooze, err := b.run(got, 1); err != nil || snooze != 0 || b.stub.calls != calls {
		t.Errorf("an ended saga was worked: %v, %v", snooze, err)
	}
}

// errKilled simulates the death of the process: the runner does nothing after it.
var errKilled = errors.New("killed")

func (b *bundle) killedRun(of installation.Installed) (killed bool) {
	defer func() {
		if v := recover(); v != nil {
			err, ok := v.(error)
			if killed = ok && errors.Is(err, errKilled); !killed {
				panic(v)
			}
		}
	}()
	if _, err := b.run(of, 1); err != nil {
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
		reached = b.killedRun(got)
		b.stub.fail, b.stub.after, b.loads.fail = nil, nil, nil
		if reached {
			b.requeue("1") // it has its job
			b.exec(`DELETE FROM control.river_job`)
			b.requeue("1") // it lost its job
			b.requeue("1")
			b.killedRun(got)
			b.exec(`DELETE FROM control.river_job`)
			b.requeue("0") // it is completed
		}
		b.whole()
		if b.state() != "completed 0" || b.loads.opened != 1 || b.stub.made != len(b.stub.topics) {
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
	if snooze, err := b.run(got, 1); err != nil || snooze != 90*time.Second ||
		b.state() != "opened throttled 1" {
		t.Errorf("throttled: %v, %v, %s", snooze, err, b.state())
	}
	calls := b.stub.calls
	if snooze, err := b.run(got, 1); err != nil || snooze <= 80*time.Second || snooze > 90*time.Second ||
		b.stub.calls != calls {
		t.Errorf("an attempt before it was due: %v, %v", snooze, err)
	}
	due()
	b.stub.fail = func(int) error { return &provider.CredentialRefused{Status: 401} }
	for range 2 {
		due()
		if _, err := b.run(got, 1); err != nil {
			t.Fatal(err)
		}
	}
	if b.state() != "failed credential_refused 3" {
		t.Errorf("refused: %s", b.state())
	}
	view, err := b.service.Connection(t.Context(), got.ConnectionID)
	if err != nil || view.Installation.State != installation.StateFailed ||
		view.Installation.Reason != "credential_refused" {
		t.Errorf("shown: %+v, %v", view, err)
	}
	b.stub.fail = nil
	b.install("app-2")
	if _, err := b.run(got, 1); err != nil || b.state() != "opened 0" {
		t.Errorf("an older epoch: %v, %s", err, b.state())
	}
	if _, err := b.run(got, 2); err != nil || b.state() != "completed 0" {
		t.Errorf("installed again: %v, %s", err, b.state())
	}
	b.whole()
	if strings.Contains(b.log.String(), "canary") {
		t.Errorf("a canary is in the log: %s", b.log)
	}
}

func TestAReinstallationSupersedesARunner(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	got := b.install("app")
	b.stub.after = func(call int) error {
		if call == 2 { // the store is installed again while its subscriptions are made
			b.install("app")
		}
		return nil
	}
	if snooze, err := b.run(got, 1); err != nil || snooze != 0 {
		t.Errorf("%v, %v", snooze, err)
	}
	if b.stub.calls != 2 || b.state() != "opened 0" || b.loads.opened != 0 {
		t.Errorf("%d calls, %s", b.stub.calls, b.state())
	}
	b.stub.after = nil
	if _, err := b.run(got, 2); err != nil || b.state() != "completed 0" {
		t.Errorf("%v, %s", err, b.state())
	}
	b.whole()
}

func TestAClosedShopEndsItsSaga(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	got := b.install("app")
	b.exec(`DELETE FROM control.credentials`)
	if snooze, err := b.run(got, 1); err != nil || snooze != 15*time.Minute ||
		b.state() != "failed store_closed 1" {
		t.Errorf("%v, %v, %s", snooze, err, b.state())
	}
}

func TestARunnerThatWasGivenUpStops(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	got := b.install("app")
	b.loads.fail = func() error { // River took it for dead, and another runner goes on
		b.loads.fail = nil
		if _, err := b.run(got, 1); err != nil {
			t.Error(err)
		}
		return nil
	}
	if snooze, err := b.run(got, 1); err != nil || snooze != 0 || b.state() != "completed 0" {
		t.Errorf("%v, %v, %s", snooze, err, b.state())
	}
	b.whole()
	b.exec(`UPDATE control.installations SET state = 'opened'`)
	calls := b.stub.calls
	b.stub.after = func(call int) error {
		if call == calls+1 {
			b.exec(`UPDATE control.installations SET state = 'webhooks_registered'`)
		}
		return nil
	}
	b.stub.held = nil
	if snooze, err := b.run(got, 1); err != nil || snooze != 0 || b.stub.calls != calls+1 ||
		b.state() != "webhooks_registered 0" {
		t.Errorf("%v, %v, %d calls, %s", snooze, err, b.stub.calls-calls, b.state())
	}
}
