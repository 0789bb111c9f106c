package installation_test

import (
	"log/slog"
	"testing"
	"time"

	"storefront.internal/control/internal/installation"
	"storefront.internal/control/internal/provider"
	"storefront.internal/shared/ident"
)

func TestSweepMendsWhatTheProviderLostOrDoubled(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	got := b.install("app")
	if _, err := b.run(got, 1); err != nil {
		t.Fatal(err)
	}
	sweeper := installation.NewSweeper(b.store, b.shops, b.hooks, b.metrics, slog.New(slog.DiscardHandler))
	sweep := func() {
		t.Helper()
		if err := b.store.RequestSubscriptionChecks(t.Context(), time.Hour); err != nil {
			t.Fatal(err)
		}
		const take = `WITH taken AS (DELETE FROM control.river_job WHERE kind = 'subscription_check' RETURNING args)
			SELECT coalesce(max(args ->> 'connection_id'), '') FROM taken`
		if c := b.text(take); c != "" {
			if err := sweeper.Check(t.Context(), ident.ConnectionID(c)); err != nil {
				t.Fatal(err)
			}
		}
	}
	calls := b.stub.calls
	if sweep(); b.stub.calls != calls {
		t.Error("swept before its time")
	}
	due := func() { b.exec(`UPDATE control.installations SET swept_at = now() - interval '2 hours'`) }
	due()
	sweep()
	if b.stub.calls != calls+1 || b.stub.made != 3 {
		t.Errorf("a whole set was mended: %d calls", b.stub.calls-calls)
	}
	first := b.stub.held[0]
	double, old, foreign, gone := first, first, first, b.stub.held[2]
	double.ID, old.ID, old.URL, foreign.ID, foreign.URL = "d", "o", first.URL+"x", "f",
		"https://elsewhere.test/x"
	b.stub.held[1].Disabled = true
	b.stub.held = append(b.stub.held[:2], double, old, foreign)
	due()
	sweep()
	b.whole()
	if len(b.stub.held) != 4 {
		t.Errorf("held: %+v", b.stub.held)
	}
	for _, sub := range b.stub.held {
		if sub.Topic == gone.Topic && sub.ID == gone.ID {
			t.Error("the lost one is there without being made")
		}
	}
	b.stub.fail = func(int) error { return &provider.CredentialRefused{Status: 401} }
	due()
	sweep()
	calls = b.stub.calls
	if sweep(); b.stub.calls != calls {
		t.Error("one that failed was swept again before its time")
	}
	b.exec(`UPDATE control.connections SET state = 'suspended'`)
	due()
	if sweep(); b.stub.calls != calls {
		t.Error("a suspended shop was called")
	}
}
