package systemtest

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"storefront.internal/deploy/fakeprovider/fake"
)

// Control is killed (SIGKILL) amid the subscriptions of an installation, and again amid its bootstrap run,
// while products change. After a restart both are completed, with one set of subscriptions and the provider's
// catalog. The provider is slow, so that the kill comes amid the work.
func TestConnectorCrash(t *testing.T) {
	t.Parallel()
	p := newPlatform(t, fake.Config{Products: 1500, Orders: 3, Unthrottled: true, Retries: quickRetries(60)})
	x := newDeployment(t, p.configure)
	p.deliverTo(x)
	edge := x.edge()
	slow := map[string]any{"api": map[string]int{"hang_ms": 250}}
	s := &shop{storefront: &storefront{t: t}, p: p, x: x}
	s.debug(http.MethodPost, "behaviour", slow, nil)
	s = x.installShop(p)

	eventually(t, 30*time.Second, "some subscriptions", func() error { return s.hasSubscriptions(4) })
	kill(x.t, x.control)
	if err := s.hasSubscriptions(13); err == nil {
		t.Error("control died too late: all subscriptions are there")
	}
	x.passMinute()
	x.controlAgain()

	eventually(t, 40*time.Second, "some pages", func() error { return s.bootstrapAt(t, "running", 400) })
	for _, id := range []string{"1001", "1002", "1003"} {
		s.change(id, "Durante "+id)
		s.announce(webhook{Topic: "product/updated", ExternalID: id, DelayMS: 1}, 0)
	}
	s.debug(http.MethodDelete, "products/1004", nil, nil)
	s.announce(webhook{Topic: "product/deleted", ExternalID: "1004", DelayMS: 1}, 0)
	kill(x.t, x.control)
	if err := s.bootstrapAt(t, "running", 0); err != nil {
		t.Errorf("control died too late: %v", err)
	}
	s.change("1005", "Sin control") // the provider resends the webhook after a restart
	s.announce(webhook{Topic: "product/updated", ExternalID: "1005", DelayMS: 1}, 0)
	x.passMinute()
	x.controlAgain()

	eventually(t, 40*time.Second, "the load", func() error { return s.bootstrapAt(t, "completed", 1499) })
	if n := x.number("SELECT count(*) FROM control.bootstrap_runs WHERE connection_id = $1",
		s.ConnectionID); n != 1 {
		t.Errorf("%d loads were opened", n)
	}
	s.awaitState("active")
	got, err := x.api.ViewConnection(t.Context(), s.ConnectionID)
	if err != nil || got.Installation.State != "completed" {
		t.Errorf("installation %+v %v", got, err)
	}
	check(t, s.subscribed())
	s.debug(http.MethodPost, "behaviour", map[string]any{}, nil)
	for _, id := range []string{"1001", "1002", "1003"} {
		s.awaitItem(t, edge, s.item(id), "a change", titled("Durante "+id))
	}
	s.awaitItem(t, edge, s.item("1005"), "a change", titled("Sin control"))
	s.awaitItem(t, edge, s.item("1004"), "a deletion", gone)
	eventually(t, 20*time.Second, "the provider's truth", s.compareCatalog)
}

func quickRetries(n int) []time.Duration {
	waits := make([]time.Duration, n)
	for i := range waits {
		waits[i] = time.Second
	}
	return waits
}

// hasSubscriptions returns nil when the platform has at least n subscriptions of the shop.
func (s *shop) hasSubscriptions(n int) error {
	var answer struct{ Subscriptions []struct{ Topic string } }
	s.debug(http.MethodGet, "subscriptions", nil, &answer)
	if len(answer.Subscriptions) < n {
		return fmt.Errorf("%d subscriptions", len(answer.Subscriptions))
	}
	return nil
}

// bootstrapAt returns nil when the shop's bootstrap run is in a state and has read at least so many products.
func (s *shop) bootstrapAt(t *testing.T, state string, products int) error {
	t.Helper()
	var got string
	var read int
	err := s.x.pool.QueryRow(context.Background(), `
		SELECT state, coalesce((resources->'resources'->'product'->>'read')::int, 0)
		FROM control.bootstrap_runs WHERE connection_id = $1`, s.ConnectionID).Scan(&got, &read)
	if err == nil && (got != state || read < products) {
		err = fmt.Errorf("it is %s and has read %d products", got, read)
	}
	return err
}

// passMinute makes the database look as if a minute had passed since control died: its leases expire, and the
// jobs have no leader.
func (x *deployment) passMinute() {
	x.t.Helper()
	// A statement that control sent before it died may still run.
	eventually(x.t, 20*time.Second, "the end of control's sessions", func() error {
		if n := x.number(`SELECT count(*) FROM pg_stat_activity
			WHERE datname = current_database() AND usename = 'control'`); n > 0 {
			return fmt.Errorf("there are %d", n)
		}
		return nil
	})
	for _, statement := range []string{
		"UPDATE control.installations SET due_at = due_at - interval '1 minute'",
		"UPDATE control.river_job SET attempted_at = attempted_at - interval '10 minutes' WHERE state = " +
			"'running'",
		"DELETE FROM control.river_leader",
	} {
		if _, err := x.pool.Exec(context.Background(), statement); err != nil {
			x.t.Fatalf("%s: %v", statement, err)
		}
	}
}
