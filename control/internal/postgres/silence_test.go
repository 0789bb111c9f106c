package postgres_test

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"storefront.internal/control/internal/installation"
	"storefront.internal/control/internal/jobs"
	"storefront.internal/control/internal/provider"
	"storefront.internal/control/internal/stats"
	"storefront.internal/shared/pg"
)

func TestSilenceIsMeasured(t *testing.T) {
	t.Parallel()
	m := newMarket(t)
	registry, err := provider.NewRegistry(m.platform)
	if err != nil {
		t.Fatal(err)
	}
	gatherer := prometheus.NewRegistry()
	collector := stats.New(stats.Config{
		Store: m.store, Providers: registry.Names(),
		Limits: stats.Limits{Silent: 24 * time.Hour, Late: time.Hour},
		Logger: slog.New(slog.DiscardHandler),
	}, gatherer)
	look := func(what string, silent int) {
		t.Helper()
		collector.Collect(t.Context())
		want := `
# HELP storefront_control_silent_shops Installed shops that have sent no webhook for longer than CONTROL_SILENT_AFTER, by provider. Many at once mean that the provider, or its way to deliver_webhook, is down.
# TYPE storefront_control_silent_shops gauge
storefront_control_silent_shops{provider="tiendanube"} ` + string(rune('0'+silent)) + "\n"
		if err := testutil.GatherAndCompare(gatherer, strings.NewReader(want),
			"storefront_control_silent_shops"); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	heard := func() string {
		return scan[string](m.shop,
			`SELECT (heard_at > now() - interval '1 hour')::text FROM control.installations`)
	}
	look("just installed", 0)
	m.exec(`UPDATE control.installations SET heard_at = now() - interval '25 hours'`)
	look("installed again", 0)
	m.exec(`UPDATE control.installations SET opened_at = now() - interval '25 hours'`)
	look("not heard of", 1)
	bad := m.request(event(provider.Changed, "p"))
	bad.Signature = sign("other")
	if _, err := m.hooks.Receive(t.Context(), bad); err == nil || heard() != "false" {
		t.Errorf("a forged delivery broke the silence: %v", err)
	}
	m.notify(provider.Changed, "p")
	if look("heard of", 0); heard() != "true" {
		t.Error("a delivery does not break the silence")
	}
	m.exec(`UPDATE control.installations SET heard_at = now() - interval '25 hours'`)
	m.exec(`UPDATE control.connections SET state = 'suspended'`)
	look("suspended", 0)
}

// TestAnOpenedRunRevivesAFailedInstallation: open_bootstrap is how an operator gets another attempt.
func TestAnOpenedRunRevivesAFailedInstallation(t *testing.T) {
	t.Parallel()
	m := newMarket(t)
	m.exec(`UPDATE control.installations SET state = 'failed', due_at = now() + interval '1 day'`)
	inserter, err := jobs.NewInserter(m.super, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	saga := installation.Ref{ID: "ins_1", Epoch: 1}
	enqueue := func(tx pgx.Tx) error { return inserter.EnqueueInstallations(t.Context(), tx, saga) }
	if err := pg.InTx(t.Context(), m.super, enqueue); err != nil {
		t.Fatal(err)
	}
	m.exec(`UPDATE control.river_job SET state = 'scheduled', scheduled_at = now() + interval '1 day' WHERE kind = 'installation_saga'`)
	m.open()
	if n := scan[int](m.shop, `SELECT count(*) FROM control.installations WHERE due_at <= now()`); n != 1 {
		t.Error("it rests on")
	}
	if n := scan[int](m.shop,
		`SELECT count(*) FROM control.river_job WHERE kind = 'installation_saga' AND state = 'available' AND scheduled_at <= now()`); n != 1 {
		t.Error("its job rests on")
	}
}
