package postgres_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"storefront.internal/engine-relay/internal/sink"
	"storefront.internal/shared/signal"
)

func TestOneBatchStoresEverything(t *testing.T) {
	t.Parallel()
	b := setup(t)
	position := int32(4)
	full := act("full", signal.AddToCart, 2)
	full.VariantID, full.Position = "var_1", &position
	full.Visitor = &signal.Visitor{VisitorID: "vis_a", SessionID: "ses_a"}
	full.Client = json.RawMessage(`{"timezone":"UTC"}`)
	bought := act("bought", signal.Purchase, -1)
	bought.OrderExternalID = "№ \"7\""
	b.record(
		t,
		decision("dec_1", `{"request":"r1"}`, "itm_1"),
		batchOf(act("seen", signal.Impression, -1), full, bought),
	)

	expect(t, "signals", b.count(t, "relay.signals"), 3)
	expect(t, "ledger", b.count(t, "relay.ledger_digests"), 3)
	expect(t, "marked", b.count(t, "relay.signals WHERE foreign_item"), 0)
	expect(t, "audit", one[string](t, b, `SELECT ip || ' ' || user_agent || ' ' || clients FROM relay.audit`),
		`203.0.113.9 test {"sig_full":{"timezone":"UTC"}}`)
	expect(t, "pending", one[int](t, b, `SELECT sum(pending)::int FROM delivery.deltas`), 3)
	head := `"connection_id":"con_a","store_id":"str_a","type":`
	times := `,"occurred_at":"2026-11-21T09:59:00Z","received_at":"2026-11-21T10:00:00Z","decision_id":"dec_1"`
	expect(
		t,
		"impression",
		b.body(t, "seen"),
		`{"signal_id":"sig_seen",`+head+`"impression"`+times+`,"engine_ids":{"request":"r1"}}`,
	)
	expect(t, "add to cart", b.body(t, "full"), `{"signal_id":"sig_full",`+head+`"add_to_cart"`+times+
		`,"item_id":"itm_1","variant_id":"var_1","position":4,"quantity":2,"visitor":{"visitor_id":"vis_a","session_id":"ses_a"}`+
		`,"cart_line":{"item_id":"itm_1","variant_id":"var_1","quantity":2,"revision":1},"engine_ids":{"request":"r1"}}`)
	expect(t, "purchase", b.body(t, "bought"), `{"signal_id":"sig_bought",`+head+`"purchase"`+times+
		`,"item_id":"itm_1","order_external_id":"№ \"7\"","engine_ids":{"request":"r1"}}`)
}

func TestRedeliveryStoresOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	messages := []sink.Message{
		decision("dec_1", "", "itm_1"),
		batchOf(act("a", signal.AddToCart, 2), click("b")),
		batchOf(act("c", signal.UpdateQuantity, 7)),
	}
	for range 3 {
		b.record(t, messages...)
	}
	// the same signals in another request, as after a 503 whose first record landed after all, and twice in
	// one request
	b.record(
		t,
		batchOf(act("a", signal.AddToCart, 2), act("d", signal.AddToCart, 1), act("d", signal.AddToCart, 1)),
	)
	expect(t, "signals", b.count(t, "relay.signals"), 4)
	expect(t, "deliveries", b.count(t, "delivery.entries"), 4)
	expect(t, "decisions", b.count(t, "relay.decisions"), 1)
	expect(t, "audits", b.count(t, "relay.audit"), 3)
	expect(t, "line", b.line(t, "itm_1"), "8 rev 3") // ties of time go by place in the request
}

func TestAuditIsKeptOncePerRequestThatBroughtSomethingNew(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.record(t, batchOf(click("a"), click("b")))
	b.record(t, batchOf(click("a"), click("b")))
	expect(t, "audits", b.count(t, "relay.audit"), 1)
	b.record(t, batchOf(click("a"), click("c")))
	expect(t, "audits", b.count(t, "relay.audit"), 2)
}

func TestLateSignalsRefoldTheLine(t *testing.T) {
	t.Parallel()
	b := setup(t)
	at := func(s signal.Signal, second int) signal.Signal {
		s.OccurredAt = epoch.Add(-time.Hour + time.Duration(second)*time.Second)
		return s
	}
	b.record(
		t,
		batchOf(at(act("set", signal.UpdateQuantity, 5), 10), at(act("later", signal.AddToCart, -1), 20)),
	)
	b.record(
		t,
		batchOf(at(act("before", signal.AddToCart, 9), 5), at(act("between", signal.AddToCart, 3), 15)),
	)
	expect(t, "line", b.line(t, "itm_1"), "9 rev 4")
	b.record(t, batchOf(at(act("gone", signal.RemoveFromCart, -1), 18)))
	expect(t, "line", b.line(t, "itm_1"), "1 rev 5")
}

func TestSignalsThatComeBeforeTheirDecision(t *testing.T) {
	t.Parallel()
	b := setup(t)
	other := click("foreign")
	other.ItemID = "itm_2"
	b.record(t, batchOf(click("held"), other, act("seen", signal.Impression, -1)))
	expect(t, "awaiting", b.count(t, "delivery.entries WHERE awaits = 'dec_1'"), 3)
	expect(t, "not known", b.count(t, "relay.signals WHERE foreign_item IS NULL"), 2)

	b.record(t, decision("dec_1", `{"request":"r1"}`, "itm_1"))
	expect(t, "not known", b.count(t, "relay.signals WHERE foreign_item IS NULL"), 0)
	expect(
		t,
		"foreign",
		one[string](t, b, `SELECT string_agg(signal_id, ' ') FROM relay.signals WHERE foreign_item`),
		"sig_foreign",
	)

	after := click("after")
	after.ItemID = "itm_2"
	registry := prometheus.NewRegistry()
	b.writer = sink.New(sink.Config{Store: b.store, Logger: discard(), Metrics: sink.NewMetrics(registry)})
	b.record(t, batchOf(after, click("held2")))
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == "storefront_relay_sink_foreign_items_total" {
			expect(t, "counted", family.GetMetric()[0].GetCounter().GetValue(), 1)
		}
	}
	expect(t, "awaiting", b.count(t, "delivery.entries WHERE awaits IS NULL"), 2)
	expect(t, "foreign", b.count(t, "relay.signals WHERE foreign_item"), 2)
}

func TestForeignItemThatNeitherTransactionCouldFlag(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.record(t, decision("dec_1", "", "itm_2"), batchOf(click("a")))
	b.exec(t, `UPDATE relay.signals SET foreign_item = NULL`)
	marked, err := b.store.BackfillForeignItems(t.Context())
	if err != nil || marked != 1 {
		t.Fatalf("marked %d, %v", marked, err)
	}
	expect(t, "foreign", b.count(t, "relay.signals WHERE foreign_item"), 1)
}

func TestSignalsOfCrawlersAreStoredAndFlagged(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r := request(click("a"))
	r.Audit.Crawler = true
	b.record(t, signalsOf(r))
	expect(
		t,
		"crawler",
		b.count(t, "relay.signals s JOIN relay.audit a USING (record_id) WHERE s.crawler AND a.crawler"),
		1,
	)
}
