package systemtest

import (
	"context"
	"net/http"
	"testing"
	"time"

	"storefront.internal/deploy/stack"
)

// PostgreSQL, Kafka and Redis are killed one after the other and come back. Without PostgreSQL intake goes
// on; without Kafka or Redis nothing is recorded, which the answer says. In the end every signal is stored
// once. Redis comes last, because one that has forgotten everything needs PostgreSQL for the hour that
// follows.
func TestStoresKilled(t *testing.T) {
	t.Parallel()
	x := newDeploymentWithStores(t)
	edge := x.edge()
	x.relay()
	s := x.newStorefront()
	d := s.recommend(edge)
	var ids []string
	known := cartBatch(d, 5)
	s.must(edge, known)
	ids = append(ids, idsOf(known)...)
	x.awaitDelivered(t, s, ids, 40*time.Second)

	refusedThenTaken := func(what string, store *stack.Process) {
		t.Helper()
		batch := cartBatch(d, 5)
		kill(t, store)
		for range 2 {
			a, err := s.send(edge, batch, 10*time.Second)
			if err != nil || a.Status != http.StatusServiceUnavailable || a.Code != "signals_unavailable" {
				t.Errorf("without %s: %+v %v", what, a, err)
			}
		}
		check(t, store.Start(context.Background()))
		if a := s.resend(edge, batch, 60*time.Second); a.count("accepted") != len(batch) {
			t.Errorf("after %s came back: %+v", what, a)
		}
		ids = append(ids, idsOf(batch)...)
		x.awaitDelivered(t, s, ids, 60*time.Second)
		if a := s.resend(edge, batch, 20*time.Second); a.count("duplicate") != len(batch) {
			t.Errorf("a resend after %s came back: %+v", what, a)
		}
	}
	kill(t, x.Postgres)
	batch := cartBatch(d, 5)
	if a := s.must(edge, batch); a.count("accepted") != len(batch) {
		t.Errorf("without PostgreSQL: %+v", a)
	}
	ids = append(ids, idsOf(batch)...)
	check(t, x.Postgres.Start(context.Background()))
	x.awaitDelivered(t, s, ids, 60*time.Second)
	refusedThenTaken("Kafka", x.Brokers[0])
	refusedThenTaken("Redis", x.Redis)
	if a := s.resend(edge, known, 20*time.Second); a.count("duplicate") != len(known) {
		t.Errorf("a Redis that forgot everything made of a stored batch: %+v", a)
	}
	x.awaitDrained(t, s)
}
