package systemtest

import (
	"net/http"
	"testing"
	"time"

	"storefront.internal/deploy/stack/client"
)

// A recommendation, its signals over the other edge, the same batch again, and what the engine gets of it.
func TestMainJob(t *testing.T) {
	t.Parallel()
	x := newDeployment(t)
	one, two := x.edge(), x.edge()
	x.relay()
	s := x.newStorefront()

	d := s.recommend(one)
	if d.Source != "engine" || len(d.Items) == 0 {
		t.Fatalf("recommendation %+v", d)
	}
	batch := cartBatch(d, 3)
	batch[1].Quantity = new(4)
	batch[2] = client.Signal{ID: "sig_" + randomHex(8), Type: "impression",
		OccurredAt: client.Timestamp(time.Now()), DecisionID: d.ID}
	if a := s.must(two, batch); a.count("accepted") != 3 {
		t.Fatalf("first: %+v", a)
	}
	if a := s.must(one, batch); a.count("duplicate") != 3 {
		t.Fatalf("again: %+v", a)
	}
	v := x.awaitDelivered(t, s, idsOf(batch), 30*time.Second)
	for i, quantity := range []int{1, 4} {
		key := lineKey{d.ID, batch[i].ItemID, batch[i].VariantID}
		if got := v.lines[key]; got != (line{quantity, 1}) {
			t.Errorf("line %v is %+v, want quantity %d at revision 1", key, got, quantity)
		}
	}
	for id, i := range v.seen {
		if len(i.EngineIDs) == 0 {
			t.Errorf("signal %s went without the engine's ids", id)
		}
	}
	x.awaitDrained(t, s)
}

// Another connection's Decision, a forged one and a foreign connection are refused.
func TestForeignDecision(t *testing.T) {
	t.Parallel()
	x := newDeployment(t)
	edge := x.edge()
	mine, other := x.newStorefront(), x.newStorefront()
	d := other.recommend(edge)
	batch := cartBatch(d, 2)
	batch[1].DecisionID = "dec_unheard-of"
	a := mine.must(edge, batch)
	for _, r := range a.Results {
		if r.Status != "rejected" || r.Reason != "unknown_decision" {
			t.Errorf("result %+v", r)
		}
	}
	thief := &storefront{t: t, Storefront: client.Storefront{ConnectionID: other.ConnectionID, Key: mine.Key}}
	if a, err := thief.send(edge, batch, 5*time.Second); err != nil || a.Status != http.StatusForbidden ||
		a.Code != "forbidden_connection" {
		t.Errorf("foreign connection: %+v %v", a, err)
	}
}
