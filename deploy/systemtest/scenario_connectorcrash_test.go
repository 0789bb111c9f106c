package systemtest

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"storefront.internal/deploy/fakeprovider/fake"
)

// Control dies (SIGKILL) amid the subscriptions of an installation, and again amid its load, while the store goes on changing: what
// is started afterwards completes both, with one set of subscriptions and the provider's truth. The provider is slow, so that there
// is an amid.
func TestConnectorCrash(t *testing.T) {
	t.Parallel()
	p := newPlatform(t, fake.Config{Products: 2500, Orders: 3, Unthrottled: true, Retries: quickRetries(60)})
	x := newTopology(t, p.configure)
	p.deliversTo(x)
	edge := x.edge()
	slow := map[string]any{"api": map[string]int{"hang_ms": 250}}
	s := &store{shop: &shop{t: t}, p: p, x: x}
	s.debug(http.MethodPost, "behaviour", slow, nil)
	s = x.opens(p)

	eventually(t, 30*time.Second, "some subscriptions", func() error { return s.registered(4) })
	x.control.Kill()
	if err := s.registered(13); err == nil {
		t.Error("control died too late: all subscriptions are there")
	}
	x.minutePasses()
	x.startControl()
	p.deliversTo(x)

	eventually(t, 40*time.Second, "some pages", func() error { return s.pages(t, "running", 400) })
	for _, id := range []string{"1001", "1002", "1003"} {
		s.change(id, "Durante "+id)
		s.announce(webhook{Topic: "product/updated", ExternalID: id, DelayMS: 1}, 0)
	}
	s.debug(http.MethodDelete, "products/1004", nil, nil)
	s.announce(webhook{Topic: "product/deleted", ExternalID: "1004", DelayMS: 1}, 0)
	x.control.Kill()
	if err := s.pages(t, "running", 0); err != nil {
		t.Errorf("control died too late: %v", err)
	}
	s.change("1005", "Sin control") // of what is told while nobody listens the provider tells again
	s.announce(webhook{Topic: "product/updated", ExternalID: "1005", DelayMS: 1}, 0)
	x.minutePasses()
	x.startControl()
	p.deliversTo(x)

	eventually(t, 40*time.Second, "the load", func() error { return s.pages(t, "completed", 2499) })
	if n := x.number("SELECT count(*) FROM control.bootstrap_runs WHERE connection_id = $1", s.connection); n != 1 {
		t.Errorf("%d loads were opened", n)
	}
	s.awaitState("active")
	got, err := x.api.Progress(t.Context(), s.connection)
	if err != nil || got.Installation.State != "completed" {
		t.Errorf("installation %+v %v", got, err)
	}
	check(t, s.subscribed())
	s.debug(http.MethodPost, "behaviour", map[string]any{}, nil)
	for _, id := range []string{"1001", "1002", "1003"} {
		s.reads(t, edge, s.item(id), "a change", titled("Durante "+id))
	}
	s.reads(t, edge, s.item("1005"), "a change", titled("Sin control"))
	s.reads(t, edge, s.item("1004"), "a deletion", gone)
	eventually(t, 20*time.Second, "the provider's truth", s.truth)
}

func quickRetries(n int) []time.Duration {
	waits := make([]time.Duration, n)
	for i := range waits {
		waits[i] = time.Second
	}
	return waits
}

// registered tells whether the platform has so many subscriptions of the store.
func (s *store) registered(n int) error {
	var answer struct{ Subscriptions []struct{ Topic string } }
	s.debug(http.MethodGet, "subscriptions", nil, &answer)
	if len(answer.Subscriptions) < n {
		return fmt.Errorf("%d subscriptions", len(answer.Subscriptions))
	}
	return nil
}

// pages tells whether the store's load is in a state and has read so many products.
func (s *store) pages(t *testing.T, state string, products int) error {
	t.Helper()
	var got string
	var read int
	err := s.x.pool.QueryRow(context.Background(), `SELECT state, coalesce((resources->'resources'->'product'->>'read')::int, 0)
		FROM control.bootstrap_runs WHERE connection_id = $1`, s.connection).Scan(&got, &read)
	if err == nil && (got != state || read < products) {
		err = fmt.Errorf("it is %s and has read %d products", got, read)
	}
	return err
}

// minutePasses makes the database look as if a minute had gone by since control died: what was lent to it lapses, and nobody leads
// the jobs.
func (x *topology) minutePasses() {
	x.t.Helper()
	for _, statement := range []string{
		"UPDATE control.installations SET lease_until = lease_until - interval '1 minute', due_at = due_at - interval '1 minute'",
		"UPDATE control.bootstrap_runs SET resume_at = resume_at - interval '2 minutes'",
		"UPDATE control.river_job SET attempted_at = attempted_at - interval '10 minutes' WHERE state = 'running'",
		"DELETE FROM control.river_leader",
	} {
		if _, err := x.pool.Exec(context.Background(), statement); err != nil {
			x.t.Fatalf("%s: %v", statement, err)
		}
	}
}
