package load

import (
	"encoding/json"
	"math/rand/v2"
	"testing"
	"time"

	"storefront.internal/deploy/stack/client"
)

func twoTestConnections() (one, two *connection) {
	with := func(id, decision string) *connection {
		return &connection{id: id, entities: map[string]*entity{}, decisions: []client.Decision{
			{ID: decision, Items: []client.RecommendedItem{{ItemID: "itm_1", VariantID: "var_1"},
				{ItemID: "itm_2"}}},
		}}
	}
	return with("con_1", "dec_AAAAAAAAAAAAAAAAAAAAAAAAAAAA"), with("con_2",
		"dec_BBBBBBBBBBBBBBBBBBBBBBBBBBBB")
}

// TestCompose checks sizes, unique ids and canaries of batches, and the share of invalid signals.
func TestCompose(t *testing.T) {
	t.Parallel()
	one, two := twoTestConnections()
	random := rand.New(rand.NewPCG(1, 2))
	malformed, foreign, total, ids := 0, 0, 0, map[string]bool{}
	for range 500 {
		batch := compose(one, two, random)
		if len(batch) == 0 || len(batch) > 50 {
			t.Fatalf("%d signals", len(batch))
		}
		for _, s := range batch {
			total++
			if ids[s.ID] {
				t.Fatalf("the id %s is used twice", s.ID)
			}
			ids[s.ID] = true
			if s.Visitor.VisitorID != one.visitor(s.ID) {
				t.Fatalf("canary of %+v", s)
			}
			if s.ForeignDecision != (s.DecisionID != "" && s.DecisionID != one.decisions[0].ID) {
				t.Fatalf("foreign %v: %s", s.ForeignDecision, s.DecisionID)
			}
			if s.Malformed {
				malformed++
			}
			if s.ForeignDecision {
				foreign++
			}
		}
	}
	if malformed*20 < total/4 || foreign*20 < total/4 {
		t.Errorf("of %d signals %d are malformed and %d have a foreign Decision", total, malformed, foreign)
	}
}

// TestResendsAreEqual checks that a batch that is sent again has the same signals, perhaps fewer, in any
// order.
func TestResendsAreEqual(t *testing.T) {
	t.Parallel()
	one, two := twoTestConnections()
	random := rand.New(rand.NewPCG(3, 4))
	encode := func(v any) string {
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	for range 200 {
		batch := compose(one, two, random)
		before := map[string]string{}
		for _, s := range batch {
			before[s.ID] = encode(s)
		}
		again := shuffled(batch, random)
		if len(again) == 0 || len(again) > len(batch) {
			t.Fatalf("%d of %d", len(again), len(batch))
		}
		for _, s := range again {
			if before[s.ID] != encode(s) {
				t.Fatalf("before %s, now %s", before[s.ID], encode(s))
			}
		}
	}
}

func TestRevisionsGrow(t *testing.T) {
	t.Parallel()
	one, _ := twoTestConnections()
	random := rand.New(rand.NewPCG(5, 6))
	last := int64(0)
	for range 50 {
		o := one.nextRevision("product", "p1", random)
		if o.Revision <= last {
			t.Fatalf("%d after %d", o.Revision, last)
		}
		last = o.Revision
	}
	if _, err := time.Parse(time.RFC3339, validSignal(one.decisions[0], random).OccurredAt); err != nil {
		t.Error(err)
	}
}
