package check

import (
	"strings"
	"testing"
	"time"

	"storefront.internal/deploy/faults/collect"
	"storefront.internal/deploy/faults/history"
)

// Each planted violation is seen, under its invariant's name.
func TestViolations(t *testing.T) {
	f := func(invariant, detail string, plant func(*world)) {
		t.Run(invariant+" "+detail, func(t *testing.T) {
			w := newWorld()
			plant(w)
			findings, _ := w.run()
			for _, f := range findings {
				if f.Invariant == invariant && strings.Contains(f.Detail, detail) {
					return
				}
			}
			t.Errorf("not seen; found: %v", findings)
		})
	}
	again := func(w *world, i int) { w.state.Signals = append(w.state.Signals, w.state.Signals[i]) }

	f("S1", "not stored", func(w *world) { w.lose(0) })
	f("S1", "stored more than once", func(w *world) { again(w, 0) })
	f("S1", "parked", func(w *world) {
		w.lose(0)
		w.state.Parked = []collect.Parked{{Connection: con, Signal: "sig_0", Reason: "refused"}}
	})
	f("S1", "otherwise than it was sent", func(w *world) { w.state.Signals[1].Item = "itm_2" })
	f("S1", "otherwise than it was sent", func(w *world) { w.state.Signals[3].Quantity = new(8) })
	f("S1", "otherwise than it was sent", func(w *world) { w.state.Signals[3].Occurred++ })
	f("S1", "sound signal was rejected", func(w *world) {
		w.signals("edge-1", []history.Sent{sound(50, "click")}, "rejected invalid_type")
	})
	f("S2", "accepted more than once", func(w *world) { w.signals("edge-2", []history.Sent{sound(0, "impression")}, "accepted") })
	f("S2", "one result per position", func(w *world) {
		w.signals("edge-2", []history.Sent{sound(0, "impression"), sound(1, "add_to_cart")}, "duplicate")
	})
	f("S3", "nobody had sent it", func(w *world) {
		s := sound(50, "click")
		w.store(s)
		w.signals("edge-1", []history.Sent{s}, "duplicate")
	})
	f("S3", "not stored", func(w *world) {
		batch := []history.Sent{sound(50, "click")}
		w.call(history.Event{Op: history.Signals, Connection: con, Signals: batch}, history.Event{Kind: history.Info, Status: 503})
		w.signals("edge-1", batch, "duplicate")
	})
	f("S4", "it is stored", func(w *world) { w.store(sound(90, "click")) })
	f("S4", "nobody sent it", func(w *world) { w.store(sound(55, "click")) })
	f("S4", "in Kafka", func(w *world) { w.state.Topic = append(w.state.Topic, collect.Record{Connection: con, ID: "sig_91"}) })
	f("S4", "at the engine", func(w *world) {
		w.state.Engine.Receipts = append(w.state.Engine.Receipts, collect.Receipt{Connection: con, ID: "sig_91", Result: "created"})
	})
	f("S4", "wrong on purpose", func(w *world) {
		bad := sound(51, "look")
		bad.Malformed = true
		w.signals("edge-1", []history.Sent{bad}, "accepted")
	})
	f("S4", "everybody was refused", func(w *world) {
		s := sound(52, "click")
		w.call(history.Event{Op: history.Signals, Connection: con, Signals: []history.Sent{s}}, history.Event{Kind: history.Fail, Status: 401})
		w.store(s)
	})
	f("S5", "stored more than once", func(w *world) {
		s := sound(53, "click")
		w.call(history.Event{Op: history.Signals, Connection: con, Signals: []history.Sent{s}}, history.Event{Kind: history.Info, Status: 503})
		w.store(s)
		w.store(s)
	})
	f("S5", "more than twice", func(w *world) {
		for range 3 {
			w.state.Topic = append(w.state.Topic, collect.Record{Connection: con, ID: "sig_1", Visitor: "vis_" + history.Canary(con, "sig_1"), RecordID: "r"})
		}
	})
	f("S6", "neither at the engine", func(w *world) { w.state.Engine.Receipts = w.state.Engine.Receipts[1:] })
	f("S6", "at the engine, and not stored", func(w *world) { w.state.Signals = w.state.Signals[1:] })
	f("S6", "two bodies", func(w *world) {
		w.state.Engine.Receipts = append(w.state.Engine.Receipts, w.state.Engine.Receipts[0])
		w.state.Engine.Receipts[len(w.state.Engine.Receipts)-1].Digest[3]++
	})
	f("S6", "two bodies", func(w *world) { // an erasure takes away the visitor, and changes nothing else
		forget(w)
		w.state.Engine.Receipts = append(w.state.Engine.Receipts, w.state.Engine.Receipts[len(w.state.Engine.Receipts)-1])
		w.state.Engine.Receipts[len(w.state.Engine.Receipts)-1].Digest[5]++
	})
	f("S6", "refused credential", func(w *world) {
		w.opt.InFlight = 2
		w.faults = append(w.faults, history.Fault{At: 0, Until: int64(time.Minute), Kind: "N12", Detail: "answers 401"})
		for range 2 + probes + 1 {
			w.state.Engine.Refusals = append(w.state.Engine.Refusals, collect.Refusal{At: start.Add(time.Second), Delivery: true})
		}
	})
	f("S7", "not the fold", func(w *world) { w.state.Lines[0].Quantity = 1 })
	f("S7", "another number of times", func(w *world) { w.state.Lines[0].Revision = 6 })
	f("S7", "no line", func(w *world) { w.state.Lines = nil })
	f("S7", "that no signal made", func(w *world) {
		w.state.Lines = append(w.state.Lines, collect.Line{Connection: con, Decision: dec, Item: "itm_9"})
	})
	f("S7", "the engine's line", func(w *world) { w.state.Engine.Receipts[5].Line.Quantity = 3 })
	f("S7", "told nothing", func(w *world) {
		for i := range w.state.Engine.Receipts {
			w.state.Engine.Receipts[i].Line = nil
		}
	})
	f("S8", "stored with another", func(w *world) { w.state.Signals[2].Visitor = w.state.Signals[1].Visitor })
	f("S8", "in Kafka with another", func(w *world) { w.state.Topic[2].Visitor = "" })
	f("S8", "at the engine with another", func(w *world) { w.state.Engine.Receipts[2].Visitor = "vis_x" })
	f("S9", "ledger", func(w *world) { w.state.Ledger[con]++ })
	f("S9", "counts are not", func(w *world) { w.state.Queue[0].Counted = 3 })
	f("S9", "view does not", func(w *world) { w.state.Queue[0].ShownDead = 1 })
	f("S9", "exports another number", func(w *world) { w.state.Metrics["relay-1"][`storefront_engine_pending{kind="interaction"}`] = 4 })
	f("S9", "not stored", func(w *world) { w.state.Dead = []collect.Delivery{{Connection: con, Kind: interaction, ID: "sig_77"}} })
	f("S9", "more than once", func(w *world) {
		w.state.Dead = []collect.Delivery{{Connection: con, Kind: interaction, ID: "sig_1"}}
		w.state.Pending = w.state.Dead
	})
	f("S10", "nobody has read", func(w *world) { w.state.Lag["storefront.signals/0"] = 2 })
	f("S10", "still waits", func(w *world) { w.state.Pending = []collect.Delivery{{Connection: con, Kind: envelope, ID: "obs_1"}} })
	f("S10", "not drained", func(w *world) { w.state.Drain = 2 * time.Minute })
	f("S10", "goroutines", func(w *world) { w.state.Metrics["relay-1"]["go_goroutines"] = 900 })
	f("S10", "panicked", func(w *world) { w.state.Metrics["relay-1"]["storefront_edge_http_panics_total"] = 1 })
	f("S11", "is not applied", func(w *world) { w.state.Truth[0].Have = "" })
	f("S11", "that the provider has not", func(w *world) { w.state.Truth[0].Want = "" })
	f("S11", "not as the provider", func(w *world) { w.state.Truth[0].Have = "bb" })
	f("S11", "older revision", func(w *world) {
		w.call(history.Event{Op: history.Item, Edge: "edge-1", Item: "itm_1"}, history.Event{Kind: history.OK, Revision: 4})
	})
	f("S11", "older revision", func(w *world) { // a new process is no excuse
		w.faults = append(w.faults, history.Fault{At: w.clock - 5, Until: w.clock + 5, Kind: "N1", Detail: "kill edge-1"})
		w.clock += 10
		w.call(history.Event{Op: history.Item, Edge: "edge-1", Item: "itm_1"}, history.Event{Kind: history.OK, Revision: 4})
	})
	f("S11", "older revision", func(w *world) { // nor is PostgreSQL for a process that goes on
		w.faults = append(w.faults, history.Fault{At: w.clock - 5, Until: w.clock + 50, Kind: "N9", Detail: "PostgreSQL stops at once and starts again"})
		w.call(history.Event{Op: history.Item, Edge: "edge-1", Item: "itm_1"}, history.Event{Kind: history.OK, Revision: 4})
	})
	f("S11", "Redis holds another", func(w *world) { w.state.Cached[0].Revision = 4 })
	f("H9", "deadlocks", func(w *world) { w.state.Deadlocks = 3 })
	f("S12", "not in the archive", func(w *world) { w.state.Observations = nil })
	f("S12", "something else", func(w *world) { w.state.Observations[0].Revision = 2 })
	f("S12", "otherwise than it was sent", func(w *world) { w.state.Observations[0].Raw = "dead" })
	f("S12", "an older revision is applied", func(w *world) { w.state.Entities[0].Revision = 2 })
	f("S12", "not the greatest", func(w *world) { w.state.Entities[0].Revision = 9 })
	f("S12", "not told", func(w *world) { w.state.Engine.Events = nil })
	f("S12", "mismatch", func(w *world) { w.state.Engine.Readings[0].Result = "mismatch" })
	f("S13", "it is ours", func(w *world) {
		w.signals("edge-1", []history.Sent{sound(54, "click")}, "rejected unknown_decision")
	})
	f("S13", "it is ours", func(w *world) {
		s := sound(54, "click")
		s.Foreign = true // the client was wrong about it
		w.signals("edge-1", []history.Sent{s}, "rejected unknown_decision")
	})
	f("H18", "revoked key", func(w *world) {
		w.call(history.Event{Op: history.KeyRevoke, Connection: con, Key: "key_1"}, history.Event{Kind: history.OK, Status: 204})
		w.clock += int64(16 * time.Second)
		w.call(history.Event{Op: history.Item, Edge: "edge-1", Item: "itm_2", Key: "key_1"}, history.Event{Kind: history.OK, Revision: 1})
	})
}

// What is legal is no finding.
func TestLegal(t *testing.T) {
	f := func(name string, plant func(*world)) {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			plant(w)
			findings, _ := w.run()
			for _, f := range findings {
				t.Error(f)
			}
		})
	}
	batch := []history.Sent{sound(60, "click")}
	unanswered := func(w *world) {
		w.call(history.Event{Op: history.Signals, Connection: con, Edge: "edge-1", Signals: batch}, history.Event{Kind: history.Info, Status: 503})
	}
	f("a 503 that left the signal", func(w *world) { unanswered(w); w.store(batch[0]) })
	f("a 503 that left nothing", unanswered)
	f("a 503, and the resend is accepted", func(w *world) { unanswered(w); w.store(batch[0]); w.signals("edge-2", batch, "accepted") })
	f("a call that was cut off, and its resend is a duplicate", func(w *world) {
		unanswered(w)
		w.events = w.events[:len(w.events)-1]
		w.store(batch[0])
		w.signals("edge-2", batch, "duplicate")
	})
	f("the same id twice in a batch", func(w *world) {
		w.store(batch[0])
		w.signals("edge-1", []history.Sent{batch[0], batch[0]}, "accepted", "duplicate")
	})
	f("a visitor who was erased between two attempts", forget)
	f("rejected at first, then sound", func(w *world) {
		bad := batch[0]
		bad.Type, bad.Malformed = "look", true
		w.signals("edge-1", []history.Sent{bad}, "rejected invalid_type")
		w.signals("edge-1", batch, "accepted")
		w.store(batch[0])
	})
	f("two at once, and the other one began a moment earlier", func(w *world) {
		w.store(batch[0])
		w.signals("edge-1", batch, "accepted")
		w.signals("edge-2", batch, "duplicate")
		first, second := len(w.events)-4, len(w.events)-2
		w.events[first].At, w.events[second].At = w.events[second].At, w.events[first].At
		w.events[first], w.events[second] = w.events[second], w.events[first]
	})
	f("delivered twice with the same bytes", func(w *world) {
		r := w.state.Engine.Receipts[3]
		r.Result = "exists"
		w.state.Engine.Receipts = append(w.state.Engine.Receipts, r)
	})
	f("dead, and listed so", func(w *world) {
		w.state.Engine.Receipts = w.state.Engine.Receipts[1:]
		w.state.Dead = []collect.Delivery{{Connection: con, Kind: interaction, ID: "sig_0"}}
		w.state.Queue[0].Dead, w.state.Queue[0].ShownDead = 1, 1
		w.state.Metrics["relay-1"][`storefront_engine_dead_last_24h{kind="interaction"}`] = 1
	})
	f("Redis forgot, and a second accepted", func(w *world) {
		w.opt.RedisFaults = true
		w.signals("edge-2", []history.Sent{sound(0, "impression")}, "accepted")
	})
	f("a clock that is ahead folds by arrival", func(w *world) {
		late := sound(61, "update_quantity") // it arrives before the others' instant of arrival, and says that it is of tomorrow
		late.OccurredAt = start.Add(24 * time.Hour).Format(time.RFC3339Nano)
		w.store(late)
		last := len(w.state.Signals) - 1
		w.state.Signals[last].Received = start.Add(-59 * time.Second).UnixMicro() // before sig_2 and what followed
		w.signals("edge-1", []history.Sent{late}, "accepted")
		w.state.Lines[0].Revision = 6
		w.state.Engine.Receipts[last].Line = &collect.Line{Connection: con, Decision: dec, Item: "itm_1", Variant: "var_1", Revision: 6}
	})
	f("an edge that was killed and finds PostgreSQL away may believe Redis", func(w *world) {
		w.faults = append(w.faults, history.Fault{At: w.clock - 5, Until: w.clock + 5, Kind: "N1", Detail: "kill edge-1"},
			history.Fault{At: w.clock, Until: w.clock + 20, Kind: "N4", Detail: "edge-1>postgres"})
		w.clock += 10
		w.call(history.Event{Op: history.Item, Edge: "edge-1", Item: "itm_1"}, history.Event{Kind: history.OK, Revision: 4})
	})
	f("overlapping reads may cross", func(w *world) {
		begin := w.events[len(w.events)-2].At
		w.call(history.Event{Op: history.Item, Edge: "edge-1", Item: "itm_7"}, history.Event{Kind: history.OK, Revision: 9})
		w.call(history.Event{Op: history.Item, Edge: "edge-1", Item: "itm_7"}, history.Event{Kind: history.OK, Revision: 8})
		w.events[len(w.events)-2].At = begin
	})
	f("an observation that nobody answered may be applied", func(w *world) {
		w.observe("p-2", 1)
		w.events[len(w.events)-1].Kind, w.events[len(w.events)-1].Outcomes = history.Info, nil
	})
	f("deadlocks of before", func(w *world) { w.state.Deadlocks, w.opt.Deadlocks = 3, 3 })
	f("the same record written twice", func(w *world) {
		w.state.Topic = append(w.state.Topic, w.state.Topic[0])
	})
	f("another run's connections", func(w *world) {
		w.state.Lines = append(w.state.Lines, collect.Line{Connection: "con_other", Decision: dec, Item: "itm_9"})
		w.state.Pending = append(w.state.Pending, collect.Delivery{Connection: "con_other", Kind: envelope, ID: "obs_1"})
		w.state.Topic = append(w.state.Topic, collect.Record{Connection: "con_other", ID: "sig_0"})
	})
}

// forget adds a signal that was delivered with its visitor, and once more without.
func forget(w *world) {
	s := sound(70, "impression")
	s.Canary, s.Forgotten = "", true
	w.store(s)
	w.signals("edge-1", []history.Sent{s}, "accepted")
	last := w.state.Engine.Receipts[len(w.state.Engine.Receipts)-1]
	w.state.Engine.Receipts[len(w.state.Engine.Receipts)-1].Visitor = "vis_forgotten"
	last.Visitor, last.Digest = "", [16]byte{70}
	w.state.Engine.Receipts = append(w.state.Engine.Receipts, last)
}

// S5's figure and S2's are counted.
func TestFigures(t *testing.T) {
	w := newWorld()
	w.opt.RedisFaults = true
	w.signals("edge-2", []history.Sent{sound(0, "impression")}, "accepted")
	s := sound(60, "click")
	w.call(history.Event{Op: history.Signals, Connection: con, Signals: []history.Sent{s}}, history.Event{Kind: history.Info, Status: 503})
	w.store(s)
	_, figures := w.run()
	if figures.ExtraAccepted != 1 || figures.StoredAfter["503"] != 1 || len(figures.StoredAfter) != 1 {
		t.Errorf("%+v", figures)
	}
}

func TestRecovery(t *testing.T) {
	w := newWorld()
	w.events, w.faults, w.clock = nil, []history.Fault{{At: 0, Until: 1000, Kind: "N1"}, {At: 5000, Until: 6000, Kind: "N1"}}, 1000
	batch := []history.Sent{sound(0, "impression")}
	w.signals("edge-1", batch, "duplicate") // ends at 1020
	w.call(history.Event{Op: history.Signals, Connection: con, Edge: "edge-2", Signals: batch}, history.Event{Kind: history.Info})
	w.clock = 3000
	w.signals("edge-2", batch, "duplicate") // ends at 3020: 2020 after the heal
	w.clock = 7000
	w.call(history.Event{Op: history.Signals, Connection: con, Edge: "edge-1", Signals: batch}, history.Event{Kind: history.Info})
	_, figures := w.run()
	if figures.Recovery.Count != 1 || figures.Recovery.Max != time.Duration(2020).Seconds() {
		t.Errorf("%+v", figures.Recovery)
	}
}
