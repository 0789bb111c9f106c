package postgres_test

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"storefront.internal/control/internal/postgres"
	"storefront.internal/control/internal/provider"
	"storefront.internal/control/internal/webhook"
	"storefront.internal/shared/testkit"
)

func TestSilenceIsMeasured(t *testing.T) {
	t.Parallel()
	m := newMarket(t)
	registry, err := provider.NewRegistry(m.platform)
	if err != nil {
		t.Fatal(err)
	}
	gatherer := prometheus.NewRegistry()
	store := postgres.NewWebhooks(testkit.Pool(t, testkit.PostgresAs(t, m.url, "storefront_control")), nil)
	watch := webhook.NewSilenceWatch(store, registry, 24*time.Hour, webhook.NewMetrics(gatherer), slog.New(slog.DiscardHandler))
	look := func(what string, silent int) {
		t.Helper()
		watch.Look(t.Context())
		want := `
# HELP storefront_control_silent_shops Installed shops that have sent no delivery for longer than CONTROL_SILENT_AFTER, by provider. Many at once mean that the provider, or the way to operation 12, is down.
# TYPE storefront_control_silent_shops gauge
storefront_control_silent_shops{provider="tiendanube"} ` + string(rune('0'+silent)) + "\n"
		if err := testutil.GatherAndCompare(gatherer, strings.NewReader(want), "storefront_control_silent_shops"); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	heard := func() string {
		return scan[string](m.shop, `SELECT (heard_at > now() - interval '1 hour')::text FROM control.installations`)
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

// TestAWantedLoadHurriesAFailedInstallation: operation 8 is how an operator has one tried again.
func TestAWantedLoadHurriesAFailedInstallation(t *testing.T) {
	t.Parallel()
	m := newMarket(t)
	m.exec(`UPDATE control.installations SET state = 'failed', due_at = now() + interval '1 day'`)
	m.open()
	if n := scan[int](m.shop, `SELECT count(*) FROM control.installations WHERE due_at <= now()`); n != 1 {
		t.Error("it rests on")
	}
}
