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
	"storefront.internal/deploy/stack"
	"storefront.internal/deploy/stack/client"
	"storefront.internal/shared/testkit"
)

// A visitor is erased while some of their interactions are delivered, one is a dead letter, some wait for an
// engine that is down and some are still in Kafka; the relay that begins the erasure is killed in it. Nothing
// of the visitor is left, the engine gets nothing of them any more, and what they do afterwards is stored
// again. Signals, counts and cart lines stay, and so do other visitors.
func TestAShopperIsErased(t *testing.T) {
	t.Parallel()
	x := newDeployment(t)
	edge := x.edge()
	relay := x.relay()
	s := x.newStorefront()
	anna, bert := newShopper(s), newShopper(s)
	d := anna.recommend(edge)
	bert.recommend(edge)

	letter := cartBatch(d, 1)
	x.engine.Behave(engine.Behaviours{Interactions: engine.Behaviour{Reject: idsOf(letter)}})
	all := append(anna.sends(edge, letter), anna.visit(edge, d, 3)...)
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
	x.awaitStored(t, s, len(all)+len(kept))
	x.stop(relay)
	all = append(all, anna.visit(edge, d, 5)...) // no relay reads it now

	x.erase(anna.ConnectionID, anna.visitor.VisitorID, http.StatusAccepted)
	told := len(x.engine.Receipts(0))
	doomed := x.relay(crash("erase.chunk", "kill"))
	eventually(t, 120*time.Second, "the crash amid the erasure", dead(doomed))
	relay = x.relay()
	x.awaitStored(t, s, len(all)+len(kept))
	x.awaitErased(t)
	for _, gone := range anna.traces() {
		if tables := testkit.TablesContaining(t, x.pool, gone); len(tables) > 0 {
			t.Errorf("%s is in %v", gone, tables)
		}
	}
	for _, stays := range bert.traces() {
		if tables := testkit.TablesContaining(t, x.pool, stays); len(tables) == 0 {
			t.Errorf("%s of another shopper is gone", stays)
		}
	}

	x.engine.Behave(engine.Behaviours{})
	if _, err := x.api.ReplayDead(t.Context(), s.ConnectionID, client.Interaction); err != nil {
		t.Fatal(err)
	}
	x.awaitQueue(t, s, "running", 0)
	ids := map[string]bool{}
	for i, r := range x.engine.Receipts(0) {
		var got interaction
		check(t, json.Unmarshal(r.Interaction, &got))
		ids[got.SignalID] = r.Result != "rejected"
		if i >= told && bytes.Contains(r.Interaction, []byte(anna.visitor.VisitorID)) {
			t.Errorf("the engine was told after the erasure: %s", r.Interaction)
		}
	}
	for _, id := range append(all, kept...) {
		if !ids[id] {
			t.Errorf("signal %s never reached the engine", id)
		}
	}
	anna.checkReturn(x, edge, d)
	x.erase(s.ConnectionID, anna.visitor.VisitorID, http.StatusAccepted)
	x.erase(s.ConnectionID, "vis_nobody", http.StatusAccepted)
	x.erase("con_none", anna.visitor.VisitorID, http.StatusNotFound)
	x.erase(s.ConnectionID, anna.visitor.SessionID, http.StatusNotFound)
	x.awaitErased(t)
	readmeForgetsAShopper(x, s, relay)
}

// erase requests the erasure of a visitor.
func (x *deployment) erase(connection, visitor string, want int) {
	x.t.Helper()
	status := http.StatusAccepted
	err := x.api.EraseVisitor(x.t.Context(), connection, visitor)
	var refused *client.StatusError
	if errors.As(err, &refused) {
		status, err = refused.Status, nil
	}
	if err != nil || status != want {
		x.t.Errorf("erase: %d %v, want %d", status, err, want)
	}
}

// awaitErased waits until every erasure is completed.
func (x *deployment) awaitErased(t *testing.T) {
	t.Helper()
	eventually(t, 120*time.Second, "the erasure", func() error {
		if n := x.number("SELECT count(*)::int FROM relay.erasures WHERE completed_at IS NULL"); n > 0 {
			return fmt.Errorf("%d erasures are not completed", n)
		}
		return nil
	})
}

// awaitStored waits until so many signals of the connection are stored; the topics are shared.
func (x *deployment) awaitStored(t *testing.T, s *storefront, want int) {
	t.Helper()
	eventually(t, 120*time.Second, "storing", func() error {
		if n := x.number("SELECT count(*)::int FROM relay.signals WHERE connection_id = $1",
			s.ConnectionID); n != want {
			return fmt.Errorf("%d of %d signals", n, want)
		}
		return nil
	})
}

// shopper is a visitor with all that identifies them.
type shopper struct {
	*storefront
	visitor client.Visitor
	page    string
}

func newShopper(s *storefront) *shopper {
	return &shopper{s, client.Visitor{VisitorID: "vis_" + randomHex(8) + "x", SessionID: "ses_" +
		randomHex(8) + "x"},
		"https://shop.example/" + randomHex(8)}
}

// traces are the texts that an erasure removes.
func (s *shopper) traces() []string {
	return []string{s.visitor.VisitorID, s.visitor.SessionID, s.page}
}

// recommend asks an edge for a Decision as this shopper.
func (s *shopper) recommend(edge *stack.Process) client.Decision {
	s.t.Helper()
	return s.storefront.recommend(edge, s.visitor)
}

// visit sends n signals of this shopper and returns their ids.
func (s *shopper) visit(edge *stack.Process, d client.Decision, n int) []string {
	s.t.Helper()
	return s.sends(edge, cartBatch(d, n))
}

func (s *shopper) sends(edge *stack.Process, batch []client.Signal) []string {
	s.t.Helper()
	for i := range batch {
		batch[i].Visitor, batch[i].Client = s.visitor, map[string]any{"page_url": s.page}
	}
	if a := s.must(edge, batch); a.count("accepted") != len(batch) {
		s.t.Errorf("a visit: %+v", a)
	}
	return idsOf(batch)
}

// checkReturn: what the visitor does after the erasure is stored as before.
func (s *shopper) checkReturn(x *deployment, edge *stack.Process, d client.Decision) {
	s.t.Helper()
	s.visit(edge, d, 2)
	eventually(s.t, 120*time.Second, "their new signals", func() error {
		if n := x.number("SELECT count(*)::int FROM relay.signals WHERE visitor_id = $1 AND session_id = $2",
			s.visitor.VisitorID, s.visitor.SessionID); n != 2 {
			return fmt.Errorf("%d signals", n)
		}
		return nil
	})
}
