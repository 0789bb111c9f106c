package installation_test

import (
	"testing"
	"time"

	"storefront.internal/control/internal/provider"
)

// TestAFailedSagaIsTriedOnceMore: by itself when it has rested, ever longer; it says meanwhile why it failed.
func TestAFailedSagaIsTriedOnceMore(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	got := b.install("app")
	run := func() {
		t.Helper()
		if _, err := b.runner.Run(t.Context(), got.InstallationID, 1); err != nil {
			t.Fatal(err)
		}
	}
	wake := func(want int) {
		t.Helper()
		if n, err := b.store.WakeSagas(t.Context(), 15*time.Second); err != nil || n != want {
			t.Fatalf("woken %d, %v, want %d", n, err, want)
		}
	}
	rests := func() string {
		return b.text(`SELECT round(extract(epoch FROM due_at - updated_at) / 60)::text FROM control.installations`)
	}
	b.stub.fail = func(int) error { return &provider.Refused{Status: 401} }
	for range 3 {
		b.exec(`UPDATE control.installations SET due_at = now()`)
		run()
	}
	if b.state() != "failed credential_refused 3 f" || rests() != "15" {
		t.Fatalf("%s, rests %s minutes", b.state(), rests())
	}
	wake(0)
	for _, step := range []struct{ age, rests string }{{"40 minutes", "40"}, {"3 days", "1440"}} {
		b.exec(`UPDATE control.installations SET due_at = now(), opened_at = now() - interval '` + step.age + `'`)
		wake(1)
		wake(0)
		if b.state() != "opened credential_refused 11 f" {
			t.Errorf("tried once more: %s", b.state())
		}
		run()
		if b.state() != "failed credential_refused 12 f" || rests() != step.rests {
			t.Errorf("%s after %s, rests %s minutes", b.state(), step.age, rests())
		}
	}
	for _, closed := range []string{"suspended", "uninstalled"} {
		b.exec(`UPDATE control.connections SET state = '` + closed + `'`)
		b.exec(`UPDATE control.installations SET due_at = now()`)
		wake(0)
	}
	b.exec(`UPDATE control.connections SET state = 'active'`)
	b.stub.fail = nil
	wake(1)
	run()
	if b.whole(); b.state() != "completed 0 f" || b.loads.opened != 1 {
		t.Errorf("%s, %d loads", b.state(), b.loads.opened)
	}
}
