package check

import (
	"fmt"
	"testing"
	"time"

	"storefront.internal/deploy/faults/collect"
	"storefront.internal/deploy/faults/history"
)

// scene is a small run without violations. Tests change it.
type scene struct {
	events []history.Event
	faults []history.Fault
	stalls []history.Stall
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

// newScene has six accepted signals of one shopper, a duplicate, a rejection, an observation, reads and a
// fault.
func newScene() *scene {
	w := &scene{state: &collect.State{Ledger: map[string]int{},
		Lag: map[string]int64{"storefront.signals/0": 0}, Metrics: map[string]map[string]float64{
			"relay-1": {`storefront_engine_pending{kind="interaction"}`: 0,
				`storefront_engine_dead_last_24h{kind="interaction"}`: 0, "go_goroutines": 50},
		}}, opt: Options{Start: start, Goroutines: map[string]float64{"relay-1": 40}}}
	w.call(history.Event{Op: history.Recommend, Connection: con, Edge: "edge-1"},
		history.Event{Kind: history.OK, Status: 200, Decision: dec, Items: []string{"itm_1"}})
	kinds := []string{"impression", "add_to_cart", "add_to_cart", "update_quantity", "add_to_cart",
		"remove_from_cart"}
	var batch []history.SentSignal
	for i, kind := range kinds {
		s := validSignal(i, kind)
		batch = append(batch, s)
		w.store(s)
	}
	w.signals("edge-1", batch, "accepted", "accepted", "accepted", "accepted", "accepted", "accepted")
	w.signals("edge-2", batch[:2], "duplicate", "duplicate")
	bad := validSignal(90, "look")
	bad.Malformed = true
	strange := validSignal(91, "impression")
	strange.ForeignDecision, strange.Decision = true, "dec_other"
	w.signals("edge-1", []history.SentSignal{bad, strange}, "rejected invalid_type",
		"rejected unknown_decision")
	w.fold()
	w.observe("p-1", 3)
	for _, revision := range []int64{4, 5} {
		w.call(history.Event{Op: history.Item, Connection: con, Edge: "edge-1", Item: "itm_1"},
			history.Event{Kind: history.OK, Status: 200, Revision: revision})
	}
	w.faults = []history.Fault{{At: w.clock, Until: w.clock + 10, Kind: "N1", Detail: "kill relay-1"}}
	w.clock += 20
	w.signals("edge-1", batch[2:3], "duplicate")
	w.state.Aggregates = []collect.Aggregate{{Connection: con, Item: "itm_1", Revision: 5}}
	w.state.Cached = []collect.Aggregate{{Connection: con, Item: "itm_1", Revision: 5}}
	w.state.ProviderEntities = []collect.ProviderEntity{{Connection: con, Entity: "product", External: "1",
		Applied: "aa", Provider: "aa"}}
	w.state.Queue = []collect.QueueCounts{{Connection: con}}
	return w
}

func validSignal(i int, kind string) history.SentSignal {
	id := fmt.Sprintf("sig_%d", i)
	s := history.SentSignal{ID: id, Type: kind, Decision: dec,
		OccurredAt: start.Add(-time.Duration(60-i) * time.Second).Format(time.RFC3339Nano),
		Canary:     history.Canary(con, id)}
	if kind != "impression" {
		s.Item, s.Variant = "itm_1", "var_1"
	}
	if kind == "update_quantity" {
		s.Quantity = new(7)
	}
	return s
}

func (w *scene) call(begin, end history.Event) uint64 {
	w.calls++
	w.clock += 10
	begin.Call, begin.Kind, begin.At = w.calls, history.Invoke, w.clock
	w.clock += 10
	end.Call, end.Op, end.At = w.calls, begin.Op, w.clock
	w.events = append(w.events, begin, end)
	return w.calls
}

// signals adds a call that was answered with statuses, each followed by its reason.
func (w *scene) signals(edge string, batch []history.SentSignal, statuses ...string) {
	end := history.Event{Kind: history.OK, Status: 202}
	for i, s := range statuses {
		r := history.SignalResult{Index: i, ID: batch[i].ID}
		_, _ = fmt.Sscan(s, &r.Status, &r.Reason)
		end.Results = append(end.Results, r)
	}
	w.call(history.Event{Op: history.Signals, Connection: con, Edge: edge, Signals: batch}, end)
}

// store adds a signal to PostgreSQL, Kafka and the engine.
func (w *scene) store(s history.SentSignal) {
	at, _ := time.Parse(time.RFC3339Nano, s.OccurredAt)
	i := len(w.state.Signals)
	w.state.Signals = append(w.state.Signals, collect.Signal{Connection: con, ID: s.ID, Type: s.Type,
		Decision: s.Decision, Item: s.Item, Variant: s.Variant,
		Visitor: "vis_" + s.Canary, Quantity: s.Quantity, Index: i, Received: start.UnixMicro(),
		Occurred: at.UnixMicro()})
	w.state.Topic = append(w.state.Topic, collect.TopicSignal{Connection: con, ID: s.ID,
		Visitor: "vis_" + s.Canary})
	w.state.Engine.Receipts = append(w.state.Engine.Receipts,
		collect.Receipt{Connection: con, ID: s.ID, Visitor: "vis_" + s.Canary, Decision: s.Decision,
			Result: "created", Digest: [16]byte{byte(i)}})
	w.state.Ledger[con]++
}

// fold adds the cart line of the signals, 0 at revision 5, and its deliveries.
func (w *scene) fold() {
	last := collect.CartLine{Connection: con, Decision: dec, Item: "itm_1", Variant: "var_1", Quantity: 0,
		Revision: 5}
	w.state.Lines = []collect.CartLine{last}
	for i, told := range []collect.CartLine{1: {Quantity: 1, Revision: 1}, 2: {Quantity: 2, Revision: 2},
		3: {Quantity: 7, Revision: 3}, 4: {Quantity: 8, Revision: 4}, 5: {Revision: 5}} {
		if told.Revision > 0 {
			told.Connection, told.Decision, told.Item, told.Variant = con, dec, "itm_1", "var_1"
			w.state.Engine.Receipts[i].CartLine = &told
		}
	}
}

func (w *scene) observe(external string, revision int64) {
	id := fmt.Sprintf("obs_%s_%d", external, revision)
	w.call(history.Event{Op: history.Observe, Connection: con, Edge: "control",
		Observations: []history.SentObservation{{Entity: "product", External: external, Revision: revision,
			Raw: "beef"}}},
		history.Event{Kind: history.OK, Status: 200,
			ObservationResults: []history.ObservationResult{{Index: 0, Status: "accepted", Observation: id}}})
	w.state.Observations = append(w.state.Observations,
		collect.Observation{ID: id, Connection: con, Entity: "product", External: external,
			Operation: "upsert", State: "accepted", Raw: "beef", Revision: revision})
	w.state.Entities = append(w.state.Entities, collect.Entity{Connection: con, Entity: "product",
		External: external, Operation: "upsert", Observation: id, Revision: revision, Custom: true})
	w.state.Engine.Events = append(w.state.Engine.Events, collect.Envelope{Observation: id, Connection: con,
		Entity: "product", External: external, Revision: revision})
	w.state.Engine.SnapshotReads = append(w.state.Engine.SnapshotReads,
		collect.SnapshotRead{Observation: id, Connection: con, Result: "read"})
}

func (w *scene) run() ([]Finding, Figures) {
	return Run(history.History{Events: w.events, Faults: w.faults, Stalls: w.stalls}, w.state, w.opt)
}

// removeSignal removes a signal from PostgreSQL and the engine.
func (w *scene) removeSignal(i int) {
	w.state.Signals = append(w.state.Signals[:i:i], w.state.Signals[i+1:]...)
	w.state.Engine.Receipts = append(w.state.Engine.Receipts[:i:i], w.state.Engine.Receipts[i+1:]...)
	w.state.Ledger[con]--
}

func TestClean(t *testing.T) {
	findings, figures := newScene().run()
	for _, f := range findings {
		t.Error(f)
	}
	if figures.Signals != 8 || figures.Accepted != 6 || figures.Duplicate != 3 || figures.Stored != 6 ||
		figures.Delivered != 6 ||
		figures.Rejected["invalid_type"] != 1 || figures.Faults["N1"] != 1 || figures.Recovery.Count != 1 ||
		figures.Elements != 11 {
		t.Errorf("%+v", figures)
	}
}
