package check

import (
	"fmt"
	"testing"
	"time"

	"storefront.internal/deploy/faults/collect"
	"storefront.internal/deploy/faults/history"
)

// world is a small run in which everything is right; tests spoil it.
type world struct {
	events []history.Event
	faults []history.Fault
	state  *collect.State
	opt    Options
	clock  int64
	calls  uint64
}

const (
	con = "con_a"
	dec = "dec_1"
)

var start = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// newWorld is six signals of one shopper, taken at once; a duplicate; a rejection; an observation; reads; a fault.
func newWorld() *world {
	w := &world{state: &collect.State{Ledger: map[string]int{}, Lag: map[string]int64{"storefront.signals/0": 0}, Metrics: map[string]map[string]float64{
		"relay-1": {`storefront_engine_pending{kind="interaction"}`: 0, `storefront_engine_dead_last_24h{kind="interaction"}`: 0, "go_goroutines": 50},
	}}, opt: Options{Start: start, Goroutines: map[string]float64{"relay-1": 40}}}
	w.call(history.Event{Op: history.Recommend, Connection: con, Edge: "edge-1"}, history.Event{Kind: history.OK, Status: 200, Decision: dec, Items: []string{"itm_1"}})
	kinds := []string{"impression", "add_to_cart", "add_to_cart", "update_quantity", "add_to_cart", "remove_from_cart"}
	var batch []history.Sent
	for i, kind := range kinds {
		s := sound(i, kind)
		batch = append(batch, s)
		w.store(s)
	}
	w.signals("edge-1", batch, "accepted", "accepted", "accepted", "accepted", "accepted", "accepted")
	w.signals("edge-2", batch[:2], "duplicate", "duplicate")
	bad := sound(90, "look")
	bad.Malformed = true
	strange := sound(91, "impression")
	strange.Foreign, strange.Decision = true, "dec_other"
	w.signals("edge-1", []history.Sent{bad, strange}, "rejected invalid_type", "rejected unknown_decision")
	w.fold()
	w.observe("p-1", 3)
	for _, revision := range []int64{4, 5} {
		w.call(history.Event{Op: history.Item, Connection: con, Edge: "edge-1", Item: "itm_1"}, history.Event{Kind: history.OK, Status: 200, Revision: revision})
	}
	w.faults = []history.Fault{{At: w.clock, Until: w.clock + 10, Kind: "N1", Detail: "kill relay-1"}}
	w.clock += 20
	w.signals("edge-1", batch[2:3], "duplicate")
	w.state.Aggregates = []collect.Aggregate{{Connection: con, Item: "itm_1", Revision: 5}}
	w.state.Cached = []collect.Aggregate{{Connection: con, Item: "itm_1", Revision: 5}}
	w.state.Truth = []collect.Truth{{Connection: con, Entity: "product", External: "1", Have: "aa", Want: "aa"}}
	w.state.Queue = []collect.Slice{{Connection: con}}
	return w
}

func sound(i int, kind string) history.Sent {
	id := fmt.Sprintf("sig_%d", i)
	s := history.Sent{ID: id, Type: kind, Decision: dec, OccurredAt: start.Add(-time.Duration(60-i) * time.Second).Format(time.RFC3339Nano), Canary: history.Canary(con, id)}
	if kind != "impression" {
		s.Item, s.Variant = "itm_1", "var_1"
	}
	if kind == "update_quantity" {
		s.Quantity = new(7)
	}
	return s
}

func (w *world) call(begin, end history.Event) uint64 {
	w.calls++
	w.clock += 10
	begin.Call, begin.Kind, begin.At = w.calls, history.Invoke, w.clock
	w.clock += 10
	end.Call, end.Op, end.At = w.calls, begin.Op, w.clock
	w.events = append(w.events, begin, end)
	return w.calls
}

// signals is a call that was answered by statuses, each with its reason behind a blank.
func (w *world) signals(edge string, batch []history.Sent, statuses ...string) {
	end := history.Event{Kind: history.OK, Status: 202}
	for i, s := range statuses {
		r := history.Result{Index: i, ID: batch[i].ID}
		_, _ = fmt.Sscan(s, &r.Status, &r.Reason)
		end.Results = append(end.Results, r)
	}
	w.call(history.Event{Op: history.Signals, Connection: con, Edge: edge, Signals: batch}, end)
}

// store lets a signal lie everywhere where it belongs.
func (w *world) store(s history.Sent) {
	at, _ := time.Parse(time.RFC3339Nano, s.OccurredAt)
	i := len(w.state.Signals)
	w.state.Signals = append(w.state.Signals, collect.Signal{Connection: con, ID: s.ID, Type: s.Type, Decision: s.Decision, Item: s.Item, Variant: s.Variant,
		Visitor: "vis_" + s.Canary, Quantity: s.Quantity, Index: i, Received: start.UnixMicro(), Occurred: at.UnixMicro()})
	w.state.Topic = append(w.state.Topic, collect.Record{Connection: con, ID: s.ID, Visitor: "vis_" + s.Canary})
	w.state.Engine.Receipts = append(w.state.Engine.Receipts, collect.Receipt{Connection: con, ID: s.ID, Visitor: "vis_" + s.Canary, Decision: s.Decision,
		Result: "created", Digest: [16]byte{byte(i)}})
	w.state.Ledger[con]++
}

// fold makes the line of the cart signals: 0 at revision 5, and what the engine was told of it.
func (w *world) fold() {
	last := collect.Line{Connection: con, Decision: dec, Item: "itm_1", Variant: "var_1", Quantity: 0, Revision: 5}
	w.state.Lines = []collect.Line{last}
	for i, told := range []collect.Line{1: {Quantity: 1, Revision: 1}, 2: {Quantity: 2, Revision: 2}, 3: {Quantity: 7, Revision: 3}, 4: {Quantity: 8, Revision: 4}, 5: {Revision: 5}} {
		if told.Revision > 0 {
			told.Connection, told.Decision, told.Item, told.Variant = con, dec, "itm_1", "var_1"
			w.state.Engine.Receipts[i].Line = &told
		}
	}
}

func (w *world) observe(external string, revision int64) {
	id := fmt.Sprintf("obs_%s_%d", external, revision)
	w.call(history.Event{Op: history.Observe, Connection: con, Edge: "control", Observations: []history.Observed{{Entity: "product", External: external, Revision: revision, Raw: "beef"}}},
		history.Event{Kind: history.OK, Status: 200, Outcomes: []history.Outcome{{Index: 0, Status: "accepted", Observation: id}}})
	w.state.Observations = append(w.state.Observations, collect.Observation{ID: id, Connection: con, Entity: "product", External: external, Operation: "upsert", State: "accepted", Raw: "beef", Revision: revision})
	w.state.Entities = append(w.state.Entities, collect.Entity{Connection: con, Entity: "product", External: external, Operation: "upsert", Observation: id, Revision: revision, Custom: true})
	w.state.Engine.Events = append(w.state.Engine.Events, collect.Envelope{Observation: id, Connection: con, Entity: "product", External: external, Revision: revision})
	w.state.Engine.Readings = append(w.state.Engine.Readings, collect.Reading{Observation: id, Connection: con, Result: "read"})
}

func (w *world) run() ([]Finding, Figures) { return Run(w.events, w.faults, w.state, w.opt) }

// lose takes a signal away from everywhere behind Kafka.
func (w *world) lose(i int) {
	w.state.Signals = append(w.state.Signals[:i:i], w.state.Signals[i+1:]...)
	w.state.Engine.Receipts = append(w.state.Engine.Receipts[:i:i], w.state.Engine.Receipts[i+1:]...)
	w.state.Ledger[con]--
}

func TestClean(t *testing.T) {
	findings, figures := newWorld().run()
	for _, f := range findings {
		t.Error(f)
	}
	if figures.Signals != 8 || figures.Accepted != 6 || figures.Duplicate != 3 || figures.Stored != 6 || figures.Delivered != 6 ||
		figures.Rejected["invalid_type"] != 1 || figures.Faults["N1"] != 1 || figures.Recovery.Count != 1 || figures.Elements != 11 {
		t.Errorf("%+v", figures)
	}
}
