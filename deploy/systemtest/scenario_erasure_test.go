package systemtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"storefront.internal/deploy/demoengine/engine"
	"storefront.internal/deploy/local/services"
	"storefront.internal/shared/testkit"
)

// A shopper is erased (E9) while some of their interactions are delivered, one is dead, some wait for an engine that is away and
// some are still in Kafka, and the relay that begins the work dies in it. Nothing of them is left, the engine is told nothing
// of them any more, and what they do afterwards is theirs again. Signals, counts and lines stay, and so does everybody else.
func TestAShopperIsErased(t *testing.T) {
	t.Parallel()
	x := newTopology(t)
	edge := x.edge()
	relay := x.relay()
	s := x.newShop()
	anna, bert := newShopper(s), newShopper(s)
	d := anna.recommend(edge)
	bert.recommend(edge)

	dead := cartBatch(d, 1)
	x.engine.Behave(engine.Behaviours{Interactions: engine.Behaviour{Reject: idsOf(dead)}})
	all := append(anna.sends(edge, dead), anna.visit(edge, d, 3)...)
	kept := bert.visit(edge, d, 2)
	eventually(t, 120*time.Second, "delivered but for one", func() error {
		_, slice, err := x.queue(s)
		if err == nil && (slice.Pending > 0 || slice.DeadLast24h == 0) {
			err = fmt.Errorf("%+v", slice)
		}
		return err
	})
	x.engine.Behave(engine.Behaviours{Interactions: engine.Behaviour{Status: http.StatusServiceUnavailable}})
	all = append(all, anna.visit(edge, d, 4)...)
	x.stored(t, s, len(all)+len(kept))
	x.stop(relay)
	all = append(all, anna.visit(edge, d, 5)...) // nobody reads it now

	x.erase(anna.connection, anna.id, http.StatusAccepted)
	told := len(x.engine.Receipts(0))
	doomed := x.relay(crash("erase.chunk", "kill"))
	eventually(t, 120*time.Second, "the crash amid the erasure", doomed.dead)
	relay = x.relay()
	x.stored(t, s, len(all)+len(kept))
	x.erased(t)
	for _, gone := range anna.traces() {
		if tables := testkit.Holding(t, x.pool, gone); len(tables) > 0 {
			t.Errorf("%s is in %v", gone, tables)
		}
	}
	for _, stays := range bert.traces() {
		if tables := testkit.Holding(t, x.pool, stays); len(tables) == 0 {
			t.Errorf("%s of another shopper is gone", stays)
		}
	}

	x.engine.Behave(engine.Behaviours{})
	if _, err := x.api.ReplayDead(t.Context(), s.connection); err != nil {
		t.Fatal(err)
	}
	x.waiting(t, s, "running", 0)
	ids := map[string]bool{}
	for i, r := range x.engine.Receipts(0) {
		var got interaction
		check(t, json.Unmarshal(r.Interaction, &got))
		ids[got.SignalID] = r.Result != "rejected"
		if i >= told && bytes.Contains(r.Interaction, []byte(anna.id)) {
			t.Errorf("the engine was told after the erasure: %s", r.Interaction)
		}
	}
	for _, id := range append(all, kept...) {
		if !ids[id] {
			t.Errorf("signal %s never reached the engine", id)
		}
	}
	anna.isBack(x, edge, d)
	x.erase(s.connection, anna.id, http.StatusAccepted)
	x.erase(s.connection, "vis_nobody", http.StatusAccepted)
	x.erase("con_none", anna.id, http.StatusNotFound)
	x.erase(s.connection, anna.session, http.StatusNotFound)
	x.erased(t)
	readmeForgetsAShopper(x, s, relay)
}

// erase is E9.
func (x *topology) erase(connection, visitor string, want int) {
	x.t.Helper()
	status := http.StatusAccepted
	err := services.Call(x.t.Context(), http.MethodDelete, x.api.BaseURL+"/internal/v1/connections/"+connection+"/visitors/"+visitor,
		services.ConnectorTokenOf(x.api.ConnectorToken, services.ConnectorProvider), nil, nil)
	var refused *services.StatusError
	if errors.As(err, &refused) {
		status, err = refused.Status, nil
	}
	if err != nil || status != want {
		x.t.Errorf("erase: %d %v, want %d", status, err, want)
	}
}

// erased waits until every erasure is completed.
func (x *topology) erased(t *testing.T) {
	t.Helper()
	eventually(t, 120*time.Second, "the erasure", func() error {
		if n := x.number("SELECT count(*)::int FROM relay.erasures WHERE completed_at IS NULL"); n > 0 {
			return fmt.Errorf("%d erasures are not completed", n)
		}
		return nil
	})
}

// stored waits until so many signals of a shop are stored. The topics are everybody's.
func (x *topology) stored(t *testing.T, s *shop, want int) {
	t.Helper()
	eventually(t, 120*time.Second, "storing", func() error {
		if n := x.number("SELECT count(*)::int FROM relay.signals WHERE connection_id = $1", s.connection); n != want {
			return fmt.Errorf("%d of %d signals", n, want)
		}
		return nil
	})
}

// shopper is a visitor of a shop, with all that identifies them.
type shopper struct {
	*shop
	id, session, page string
}

func newShopper(s *shop) *shopper {
	return &shopper{s, "vis_" + randomHex(8) + "x", "ses_" + randomHex(8) + "x", "https://shop.example/" + randomHex(8)}
}

// traces are what must not be found any more.
func (s *shopper) traces() []string { return []string{s.id, s.session, s.page} }

// recommend asks an edge for a Decision as this shopper.
func (s *shopper) recommend(edge *node) decision {
	s.t.Helper()
	var d decision
	body := fmt.Sprintf(`{"placement":"home","visitor":{"visitor_id":%q,"session_id":%q}}`, s.id, s.session)
	status, text, err := s.post(edge, "recommendations", []byte(body), 10*time.Second)
	if err != nil || status != http.StatusOK {
		s.t.Fatalf("recommendation: %d %s %v", status, text, err)
	}
	check(s.t, json.Unmarshal(text, &d))
	if len(d.Items) == 0 {
		d.Items = []item{{"itm_test", "var_test"}}
	}
	return d
}

// visit sends so many signals of this shopper's and returns their ids.
func (s *shopper) visit(edge *node, d decision, n int) []string {
	s.t.Helper()
	return s.sends(edge, cartBatch(d, n))
}

func (s *shopper) sends(edge *node, batch []signal) []string {
	s.t.Helper()
	type personal struct {
		signal
		Client map[string]string `json:"client"`
	}
	sent := make([]personal, len(batch))
	for i := range batch {
		batch[i].Visitor = visitor{s.id, s.session}
		sent[i] = personal{batch[i], map[string]string{"page_url": s.page}}
	}
	if a := s.must(edge, sent); a.count("accepted") != len(batch) {
		s.t.Errorf("a visit: %+v", a)
	}
	return idsOf(batch)
}

// isBack: what the visitor does after the erasure is stored as ever.
func (s *shopper) isBack(x *topology, edge *node, d decision) {
	s.t.Helper()
	s.visit(edge, d, 2)
	eventually(s.t, 120*time.Second, "their new signals", func() error {
		if n := x.number("SELECT count(*)::int FROM relay.signals WHERE visitor_id = $1 AND session_id = $2", s.id, s.session); n != 2 {
			return fmt.Errorf("%d signals", n)
		}
		return nil
	})
}
