package installation_test

import (
	"fmt"
	"testing"
	"time"

	"storefront.internal/control/internal/provider"
)

// TestAFailedSagaIsTriedOnceMore: a failed saga gets further attempts at ever longer intervals, and keeps its
// reason.
func TestAFailedSagaIsTriedOnceMore(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	got := b.install("app")
	run := func() {
		t.Helper()
		if _, err := b.run(got, 1); err != nil {
			t.Fatal(err)
		}
	}
	rests := func() string {
		return b.text(`SELECT round(extract(epoch FROM due_at - updated_at) / 60)::text FROM control.installations`)
	}
	b.stub.fail = func(int) error { return &provider.CredentialRefused{Status: 401} }
	for range 3 {
		b.exec(`UPDATE control.installations SET due_at = now()`)
		run()
	}
	if b.state() != "failed credential_refused 3" || rests() != "15" {
		t.Fatalf("%s, rests %s minutes", b.state(), rests())
	}
	calls := b.stub.calls
	if snooze, err := b.run(got, 1); err != nil || snooze < 14*time.Minute || b.stub.calls != calls {
		t.Errorf("before it is due: %v, %v, %d calls", snooze, err, b.stub.calls-calls)
	}
	for i, step := range []struct{ age, rests string }{{"40 minutes", "40"}, {"3 days", "1440"}} {
		b.exec(`UPDATE control.installations SET due_at = now(), opened_at = now() - interval '` + step.age +
			`'`)
		run()
		if b.state() != fmt.Sprintf("failed credential_refused %d", 4+i) || rests() != step.rests {
			t.Errorf("%s after %s, rests %s minutes", b.state(), step.age, rests())
		}
	}
	calls = b.stub.calls
	for _, closed := range []string{"suspended", "uninstalled"} {
		b.exec(`UPDATE control.connections SET state = '` + closed + `'`)
		b.exec(`UPDATE control.installations SET due_at = now()`)
		if snooze, err := b.run(got, 1); err != nil || snooze != 24*time.Hour || b.stub.calls != calls ||
			b.state() != "failed credential_refused 5" {
			t.Errorf("%s: %v, %v, %s", closed, snooze, err, b.state())
		}
	}
	b.exec(`UPDATE control.connections SET state = 'active'`)
	b.stub.fail = nil
	run()
	if b.whole(); b.state() != "completed 0" || b.loads.opened != 1 {
		t.Errorf("%s, %d loads", b.state(), b.loads.opened)
	}
}
