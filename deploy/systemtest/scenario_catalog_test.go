package systemtest

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"storefront.internal/deploy/democonnector/connector"
	"storefront.internal/deploy/demoengine/engine"
	"storefront.internal/deploy/stack"
	"storefront.internal/deploy/stack/client"
)

// The catalog on real processes. These scenarios run in parallel, before the other parallel ones, because
// they measure how soon a change is seen.
func TestCatalog(t *testing.T) {
	t.Run("entities", testCatalog)
	t.Run("envelopes wait while blocked", testEnvelopesWaitWhileBlocked)
	t.Run("reads without Redis", testReadsWithoutRedis)
}

// Delivered observations are read by shoppers and delivered to the engine, on one deployment with two edges.
// Each case has a connection of its own.
func testCatalog(t *testing.T) {
	t.Parallel()
	x := newDeployment(t)
	edges := []*stack.Process{x.edge("EDGE_ENGINE_DEADLINE=500ms"), x.edge()}
	x.relay()
	for name, f := range map[string]func(x *deployment, edges []*stack.Process){
		"life of a product": lifeOfProduct, "otherStatuses": otherStatuses, "order": orderStaysPrivate,
		"change":     changeReachesReaders,
		"quarantine": quarantine, "recommendations": recommendationsFromCatalog,
		"readme": readmeDeliversAndReadsBack,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			y := *x // the same deployment, with this test's clean-up
			y.t = t
			f(&y, edges)
		})
	}
}

// lifeOfProduct: a product is delivered, read on two edges, changed, put into a category that is renamed, and
// deleted. Each step is delivered to the engine, which can read it.
func lifeOfProduct(x *deployment, edges []*stack.Process) {
	t := x.t
	s, stranger := x.newStorefront(), x.newStorefront()
	results := s.deliverAccepted(category("c1", 1, "Ropa"), product("p1", 1, "Remera", "c1", "c2"))
	id := results[1].EntityID
	first := s.awaitItem(t, edges[0], id, "the product", titled("Remera"))
	if first.Item.Connection != s.ConnectionID || first.Revision < 1 ||
		first.Variants[0].Price.Amount != "10.50" || first.Availability[0].Quantity != 3 {
		t.Errorf("item %s", first.body)
	}
	if tax := first.Item.Taxonomy; len(tax) != 2 || tax[0].Name["es"] != "Ropa" || tax[1].Name != nil {
		t.Errorf("taxonomy %+v", tax)
	}
	if again, err := s.read(edges[1], id, first.ETag); err != nil ||
		again.Status != http.StatusNotModified || again.ETag != first.ETag || len(again.body) != 0 {
		t.Errorf("the other edge with tag %s: %+v %v", first.ETag, again, err)
	}
	foreign, err := stranger.read(edges[0], id, "")
	if err != nil || !gone(foreign) {
		t.Errorf("foreign item: %+v %v", foreign, err)
	}
	missing, err := s.read(edges[0], "itm_"+strings.Repeat("a", 32), "")
	if err != nil || !slices.Equal(withoutRequestID(missing.body), withoutRequestID(foreign.body)) {
		t.Errorf("missing %s, foreign %s, %v", missing.body, foreign.body, err)
	}

	results = append(results,
		s.deliverAccepted(category("c1", 2, "Ropa nueva"), category("c2", 1, "Verano"))...)
	for _, edge := range edges {
		now := s.awaitItem(t, edge, id, "the renamed category", func(i itemAnswer) bool {
			return len(i.Item.Taxonomy) == 2 && i.Item.Taxonomy[0].Name["es"] == "Ropa nueva" &&
				i.Item.Taxonomy[1].Name["es"] == "Verano"
		})
		if now.Revision <= first.Revision || now.ETag == first.ETag {
			t.Errorf("after the rename: revision %d tag %s", now.Revision, now.ETag)
		}
	}
	results = append(results, s.deliverAccepted(deleted(connector.Product, "p1", 2))...)
	for _, edge := range edges {
		s.awaitItem(t, edge, id, "the deletion", gone)
	}
	results = append(results, s.deliverAccepted(product("p1", 3, "Remera otra vez"))...)
	back := s.awaitItem(t, edges[0], id, "the product again", titled("Remera otra vez"))
	if back.Revision <= first.Revision {
		t.Errorf("refresh_revision fell from %d to %d", first.Revision, back.Revision)
	}
	x.awaitRead(t, results...)
}

// otherStatuses checks the other statuses of an observation.
func otherStatuses(x *deployment, _ []*stack.Process) {
	t, s := x.t, x.newStorefront()
	one := product("v1", 5, "Uno")
	applied := s.deliverAccepted(one)[0]
	got := s.deliver(one, product("v1", 4, "Viejo"), product("v1", 5, "Otro"),
		connector.Observation{Entity: connector.Product, Revision: 1},
		product("v1", 6, "Seis"), deleted(connector.Product, "v1", 7), product("v1", 8, "Ocho"))
	want := []string{connector.Duplicate, connector.Stale, connector.Conflict, connector.Rejected,
		connector.Accepted, connector.Accepted, connector.Accepted}
	for i, r := range got {
		if r.Status != want[i] {
			t.Errorf("position %d: %+v, want %s", i, r, want[i])
		}
	}
	if got[0].ObservationID != applied.ObservationID || got[3].Reason != "invalid_external_id" {
		t.Errorf("duplicate %+v of %+v; rejected %+v", got[0], applied, got[3])
	}
	x.awaitRead(t, got[4:]...)
	for _, r := range x.engine.Readings(0) {
		if r.ObservationID == got[1].ObservationID || r.ObservationID == got[2].ObservationID {
			t.Errorf("the engine was told of what was not accepted: %+v", r)
		}
	}
}

// orderStaysPrivate: the engine reads an order, and no log of the deployment contains its buyer.
func orderStaysPrivate(x *deployment, _ []*stack.Process) {
	t, s := x.t, x.newStorefront()
	buyer := "buyer-" + randomHex(8)
	price := map[string]string{"amount": "10.50", "currency": "ARS"}
	sound := map[string]any{"status": "paid", "currency": "ARS", "total": price,
		"placed_at": "2026-01-02T03:04:05Z", "buyer": map[string]string{"name": buyer},
		"lines": []any{map[string]any{"item_external_id": "p1", "quantity": 1, "unit_price": price}}}
	broken := map[string]any{"status": "paid", "buyer": buyer}
	got := s.deliver(connector.Observation{Entity: connector.Order, ExternalID: "o1", Revision: 1,
		Document: sound},
		connector.Observation{Entity: connector.Order, ExternalID: buyer, Revision: 1, Document: broken})
	if got[0].Status != connector.Accepted || got[1].Status != connector.Quarantined {
		t.Fatalf("orders %+v", got)
	}
	x.awaitRead(t, got[0])
	logs, err := filepath.Glob(filepath.Join(x.LogDir, "*.log"))
	check(t, err)
	for _, path := range logs {
		if text, err := os.ReadFile(path); err != nil || bytes.Contains(text, []byte(buyer)) {
			t.Errorf("%s: %v, or it tells of the buyer", path, err)
		}
	}
	if len(logs) < 4 {
		t.Errorf("%d logs", len(logs))
	}
}

// withoutRequestID removes what differs between two problem bodies of the same kind.
func withoutRequestID(body []byte) []byte {
	at := bytes.Index(body, []byte(`"request_id":"`))
	if at < 0 {
		return body
	}
	at += len(`"request_id":"`)
	return append(bytes.Clone(body[:at]), body[at+bytes.IndexByte(body[at:], '"'):]...)
}

// changeReachesReaders: an edge that reads the item all the time answers with a change within two seconds
// (median).
func changeReachesReaders(x *deployment, edges []*stack.Process) {
	t, edge, s := x.t, edges[1], x.newStorefront()
	id := s.deliverAccepted(product("p1", 1, "v1"))[0].EntityID
	s.awaitItem(t, edge, id, "the product", titled("v1"))
	var took []time.Duration
	for revision := int64(2); revision < 22; revision++ {
		s.deliverAccepted(product("p1", revision, fmt.Sprint("v", revision)))
		begun := time.Now()
		for got := (itemAnswer{}); !titled(fmt.Sprint("v", revision))(got); {
			var err error
			if got, err = s.read(edge, id, ""); err != nil || time.Since(begun) > 20*time.Second {
				t.Fatalf("revision %d after %s: %s %v", revision, time.Since(begun), got.body, err)
			}
		}
		took = append(took, time.Since(begun))
	}
	slices.Sort(took)
	t.Logf("a change reached a reading edge after %s (median), %s (slowest of %d)", took[len(took)/2],
		took[len(took)-1], len(took))
	if took[len(took)/2] > 2*time.Second {
		t.Errorf("median %s", took[len(took)/2])
	}
}

// recommendationsFromCatalog: recommendations hold only items of the catalog: the engine's, and without the
// engine the products that were refreshed last.
func recommendationsFromCatalog(x *deployment, edges []*stack.Process) {
	t, edge, s := x.t, edges[0], x.newStorefront()
	newest := s.deliverAccepted(product("newest", 1, "Nuevo"))[0].EntityID
	mine := map[string]bool{newest: true}
	for _, r := range s.deliver(baseCatalog()...) {
		mine[r.EntityID] = true
	}
	for _, source := range []string{"engine", "fallback"} {
		if source == "fallback" {
			x.engine.Behave(engine.Behaviours{Recommendations: engine.Behaviour{HangMS: 30_000}})
		}
		// On a busy machine a first list may come too late; the next shopper gets it.
		eventually(t, 15*time.Second, source, func() error {
			begun := time.Now()
			d := s.recommend(edge)
			if took := time.Since(begun); took > 5*time.Second {
				t.Errorf("%s: answered after %s", source, took)
			}
			foreign := slices.ContainsFunc(d.Items,
				func(i client.RecommendedItem) bool { return !mine[i.ItemID] })
			if d.Source != source || foreign || source == "fallback" && d.Items[0].ItemID != newest {
				return fmt.Errorf("%+v, newest %s", d, newest)
			}
			return nil
		})
	}
}
