package postgres_test

import (
	"log/slog"
	"testing"
	"time"

	"storefront.internal/control/internal/installation"
	"storefront.internal/control/internal/jobs"
	"storefront.internal/control/internal/postgres"
	"storefront.internal/control/internal/provider"
	shops "storefront.internal/control/internal/shop"
	"storefront.internal/shared/testkit"
)

// view returns what view_connection shows.
func (m *market) view() installation.View {
	m.t.Helper()
	pool := testkit.Pool(m.t, testkit.PostgresAs(m.t, m.url, "storefront_control"))
	inserter, err := jobs.NewInserter(pool, slog.New(slog.DiscardHandler))
	if err != nil {
		m.t.Fatal(err)
	}
	v, err := postgres.NewInstallations(pool, inserter).Connection(m.t.Context(), m.from.ConnectionID)
	if err != nil {
		m.t.Fatal(err)
	}
	return v
}

// TestARefusedCredentialIsShown checks a shop whose provider refuses the credential and told of no
// uninstallation: it stays active, and the refusal is shown until the shop can be called again.
func TestARefusedCredentialIsShown(t *testing.T) {
	t.Parallel()
	m := newMarket(t)
	check := func(answer error) {
		t.Helper()
		m.platform.mu.Lock()
		m.platform.profile = answer
		m.platform.mu.Unlock()
		if _, err := m.checker.Check(t.Context(), m.from.ConnectionID, false); err != nil {
			t.Error(err)
		}
	}
	refused := func(want bool) *time.Time {
		t.Helper()
		v := m.view()
		f, err := m.store.Figures(t.Context(), anHour())
		if err != nil || (f.Refused == 1) != want {
			t.Errorf("%d refused, %v", f.Refused, err)
		}
		if (v.CredentialRefusedAt != nil) != want || v.State != string(shops.Active) {
			t.Errorf("refused %v, want %v; %s", v.CredentialRefusedAt, want, v.State)
		}
		return v.CredentialRefusedAt
	}
	refusal := &provider.CredentialRefused{Status: 403}
	refused(false)
	check(refusal)
	first := refused(true)
	check(refusal)
	if again := refused(true); first == nil || again == nil || !again.Equal(*first) {
		t.Errorf("since %v, then since %v", first, again)
	}
	check(nil)
	refused(false)
	check(refusal)
	refused(true)
	m.exec(`UPDATE control.installations SET caught_up_at = now()`) // the scope came back
	refused(false)
	check(refusal)
	refused(true)
	m.exec(`UPDATE control.credentials SET updated_at = now()`) // installed again
	refused(false)
}

func TestADisabledConnectionIsShown(t *testing.T) {
	t.Parallel()
	m := newMarket(t)
	if v := m.view(); v.Disabled != nil {
		t.Errorf("%+v", v.Disabled)
	}
	ok, err := m.openSwitch().Disable(t.Context(), m.from.ConnectionID, shops.DisabledByOperator, "floods us")
	if !ok || err != nil {
		t.Fatal(ok, err)
	}
	if d := m.view().Disabled; d == nil || d.By != shops.DisabledByOperator || d.Reason != "floods us" ||
		time.Since(d.At) > time.Hour {
		t.Errorf("%+v", d)
	}
}
