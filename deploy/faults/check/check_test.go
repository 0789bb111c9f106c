package check

import (
	"strings"
	"testing"
	"time"

	"storefront.internal/deploy/faults/collect"
	"storefront.internal/deploy/faults/history"
)

// TestViolations checks that each violation is found under the name of its invariant.
func TestViolations(t *testing.T) {
	f := func(invariant, detail string, plant func(*scene)) {
		t.Run(invariant+" "+detail, func(t *testing.T) {
			w := newScene()
			plant(w)
			findings, _ := w.run()
			for _, f := range findings {
				if f.Invariant == invariant && strings.Contains(f.Detail, detail) {
					return
				}
			}
			t.Errorf("not found; findings: %v", findings)
		})
	}
	again := func(w *scene, i int) { w.state.Signals = append(w.state.Signals, w.state.Signals[i]) }

	f("S1", "not stored", func(w *scene) { w.removeSignal(0) })
	f("S1", "stored more than once", func(w *scene) { again(w, 0) })
	f("S1", "parked", func(w *scene) {
		w.removeSignal(0)
		w.state.Parked = []collect.ParkedSignal{{Connection: con, Signal: "sig_0", Reason: "refused"}}
	})
	f("S1", "as it was sent", func(w *scene) { w.state.Signals[1].Item = "itm_2" })
	f("S1", "as it was sent", func(w *scene) { w.state.Signals[3].Quantity = new(8) })
	f("S1", "as it was sent", func(w *scene) { w.state.Signals[3].Occurred++ })
	f("S1", "valid signal was rejected", func(w *scene) {
		w.signals("edge-1", []history.SentSignal{validSignal(50, "click")}, "rejected invalid_type")
	})
	f("S14", "is still stored", func(w *scene) {
		s := validSignal(53, "impression")
		s.Canary, s.Visitor, s.VisitorErased = "", "vis_erased", true
		w.store(s)
		w.state.Signals[len(w.state.Signals)-1].Visitor = s.Visitor
		w.signals("edge-1", []history.SentSignal{s}, "accepted")
		w.call(history.Event{Op: history.Erase, Connection: con, Visitor: s.Visitor},
			history.Event{Kind: history.OK, Status: 202})
	})
	f("S14", "no request names", func(w *scene) {
		at := start.Add(time.Second)
		w.state.Observations = append(w.state.Observations, collect.Observation{ID: "obs_order",
			Connection: con, Entity: "order", External: "7", State: "accepted", Redacted: &at})
	})
	f("L10", "dead-lettered", func(w *scene) {
		w.opt.Replayed = 2 * maxDead
		w.faults = append(w.faults, history.Fault{Kind: "N12", Detail: `the engine answers {"status":422}`})
	})
	f("S2", "accepted more than once",
		func(w *scene) {
			w.signals("edge-2", []history.SentSignal{validSignal(0, "impression")},
				"accepted")
		})
	f("S2", "one result per position", func(w *scene) {
		w.signals("edge-2", []history.SentSignal{validSignal(0, "impression"), validSignal(1, "add_to_cart")},
			"duplicate")
	})
	f("S3", "not sent before", func(w *scene) {
		s := validSignal(50, "click")
		w.store(s)
		w.signals("edge-1", []history.SentSignal{s}, "duplicate")
	})
	f("S3", "not stored", func(w *scene) {
		batch := []history.SentSignal{validSignal(50, "click")}
		w.call(history.Event{Op: history.Signals, Connection: con, Signals: batch},
			history.Event{Kind: history.Info, Status: 503})
		w.signals("edge-1", batch, "duplicate")
	})
	f("S4", "it is stored", func(w *scene) { w.store(validSignal(90, "click")) })
	f("S4", "never sent", func(w *scene) { w.store(validSignal(55, "click")) })
	f("S4", "in Kafka", func(w *scene) {
		w.state.Topic = append(w.state.Topic, collect.TopicSignal{Connection: con, ID: "sig_91"})
	})
	f("S4", "at the engine", func(w *scene) {
		w.state.Engine.Receipts = append(w.state.Engine.Receipts,
			collect.Receipt{Connection: con, ID: "sig_91", Result: "created"})
	})
	f("S4", "invalid on purpose", func(w *scene) {
		bad := validSignal(51, "look")
		bad.Malformed = true
		w.signals("edge-1", []history.SentSignal{bad}, "accepted")
	})
	f("S4", "only sent in failed requests", func(w *scene) {
		s := validSignal(52, "click")
		w.call(history.Event{Op: history.Signals, Connection: con, Signals: []history.SentSignal{s}},
			history.Event{Kind: history.Fail, Status: 401})
		w.store(s)
	})
	f("S5", "stored more than once", func(w *scene) {
		s := validSignal(53, "click")
		w.call(history.Event{Op: history.Signals, Connection: con, Signals: []history.SentSignal{s}},
			history.Event{Kind: history.Info, Status: 503})
		w.store(s)
		w.store(s)
	})
	f("S5", "more than twice", func(w *scene) {
		for range 3 {
			w.state.Topic = append(w.state.Topic, collect.TopicSignal{Connection: con, ID: "sig_1",
				Visitor: "vis_" + history.Canary(con, "sig_1"), RecordID: "r"})
		}
	})
	f("S6", "neither delivered", func(w *scene) { w.state.Engine.Receipts = w.state.Engine.Receipts[1:] })
	f("S6", "at the engine, but not stored", func(w *scene) { w.state.Signals = w.state.Signals[1:] })
	f("S6", "two bodies", func(w *scene) {
		w.state.Engine.Receipts = append(w.state.Engine.Receipts, w.state.Engine.Receipts[0])
		w.state.Engine.Receipts[len(w.state.Engine.Receipts)-1].Digest[3]++
	})
	f("S6", "two bodies", func(w *scene) { // an erasure removes the visitor and nothing else
		addErased(w)
		w.state.Engine.Receipts = append(w.state.Engine.Receipts,
			w.state.Engine.Receipts[len(w.state.Engine.Receipts)-1])
		w.state.Engine.Receipts[len(w.state.Engine.Receipts)-1].Digest[5]++
	})
	f("S6", "rejected credential", func(w *scene) {
		w.opt.InFlight = 2
		w.faults = append(w.faults, history.Fault{At: 0, Until: int64(time.Minute), Kind: "N12",
			Detail: "answers 401"})
		for range 2 + maxProbes + 1 {
			w.state.Engine.Unauthorized = append(w.state.Engine.Unauthorized,
				collect.Unauthorized{At: start.Add(time.Second), Delivery: true})
		}
	})
	f("S7", "not the fold", func(w *scene) { w.state.Lines[0].Quantity = 1 })
	f("S7", "not the number of its signals", func(w *scene) { w.state.Lines[0].Revision = 6 })
	f("S7", "no cart line", func(w *scene) { w.state.Lines = nil })
	f("S7", "without signals", func(w *scene) {
		w.state.Lines = append(w.state.Lines, collect.CartLine{Connection: con, Decision: dec, Item: "itm_9"})
	})
	f("S7", "the engine's cart line", func(w *scene) { w.state.Engine.Receipts[5].CartLine.Quantity = 3 })
	f("S7", "engine does not have", func(w *scene) {
		for i := range w.state.Engine.Receipts {
			w.state.Engine.Receipts[i].CartLine = nil
		}
	})
	f("S8", "stored with another", func(w *scene) { w.state.Signals[2].Visitor = w.state.Signals[1].Visitor })
	f("S8", "in Kafka with another", func(w *scene) { w.state.Topic[2].Visitor = "" })
	f("S8", "at the engine with another", func(w *scene) { w.state.Engine.Receipts[2].Visitor = "vis_x" })
	f("S9", "ledger does not have each", func(w *scene) { w.state.Ledger[con]-- })
	f("S9", "each stored signal once", func(w *scene) { delete(w.state.Ledger, con) })
	f("S9", "ledger has signals that are not stored", func(w *scene) { w.state.LedgerOnly = 1 })
	f("S9", "counts differ", func(w *scene) { w.state.Queue[0].Counted = 3 })
	f("S9", "view differs", func(w *scene) { w.state.Queue[0].ViewDead = 1 })
	f("S9", "exports a wrong number",
		func(w *scene) { w.state.Metrics["relay-1"][`storefront_engine_pending{kind="interaction"}`] = 4 })
	f("S9", "not stored", func(w *scene) {
		w.state.Dead = []collect.Delivery{{Connection: con,
			Kind: interaction, ID: "sig_77"}}
	})
	f("S9", "more than once", func(w *scene) {
		w.state.Dead = []collect.Delivery{{Connection: con, Kind: interaction, ID: "sig_1"}}
		w.state.Pending = w.state.Dead
	})
	f("S10", "unread", func(w *scene) { w.state.Lag["storefront.signals/0"] = 2 })
	f("S10", "still pending", func(w *scene) {
		w.state.Pending = []collect.Delivery{{Connection: con,
			Kind: envelope, ID: "obs_1"}}
	})
	f("S10", "not drained", func(w *scene) { w.state.Drain = 2 * time.Minute })
	f("S10", "goroutines", func(w *scene) { w.state.Metrics["relay-1"]["go_goroutines"] = 900 })
	f("S10", "panicked", func(w *scene) {
		w.state.Metrics["relay-1"]["storefront_edge_http_panics_total"] = 1
	})
	f("S11", "is not applied", func(w *scene) { w.state.ProviderEntities[0].Applied = "" })
	f("S11", "does not exist at the provider", func(w *scene) { w.state.ProviderEntities[0].Provider = "" })
	f("S11", "differs from the provider", func(w *scene) { w.state.ProviderEntities[0].Applied = "bb" })
	f("S11", "older revision", func(w *scene) {
		w.call(history.Event{Op: history.Item, Edge: "edge-1", Item: "itm_1"},
			history.Event{Kind: history.OK, Revision: 4})
	})
	f("S11", "older revision", func(w *scene) { // a new process must not answer an older revision
		w.faults = append(w.faults, history.Fault{At: w.clock - 5, Until: w.clock + 5, Kind: "N1",
			Detail: "kill edge-1"})
		w.clock += 10
		w.call(history.Event{Op: history.Item, Edge: "edge-1", Item: "itm_1"},
			history.Event{Kind: history.OK, Revision: 4})
	})
	f("S11", "older revision", func(w *scene) { // a restart of PostgreSQL does not excuse a running process
		w.faults = append(w.faults, history.Fault{At: w.clock - 5, Until: w.clock + 50, Kind: "N9",
			Detail: "PostgreSQL stops at once and starts again"})
		w.call(history.Event{Op: history.Item, Edge: "edge-1", Item: "itm_1"},
			history.Event{Kind: history.OK, Revision: 4})
	})
	f("S11", "Redis has another", func(w *scene) { w.state.Cached[0].Revision = 4 })
	f("H9", "deadlocks", func(w *scene) { w.state.Deadlocks = 3 })
	f("S12", "not in the archive", func(w *scene) { w.state.Observations = nil })
	f("S12", "another observation", func(w *scene) { w.state.Observations[0].Revision = 2 })
	f("S12", "as it was sent", func(w *scene) { w.state.Observations[0].Raw = "dead" })
	f("S12", "an older revision is applied", func(w *scene) { w.state.Entities[0].Revision = 2 })
	f("S12", "not the greatest", func(w *scene) { w.state.Entities[0].Revision = 9 })
	f("S12", "no envelope", func(w *scene) { w.state.Engine.Events = nil })
	f("S12", "mismatch", func(w *scene) { w.state.Engine.SnapshotReads[0].Result = "mismatch" })
	f("S13", "of the connection", func(w *scene) {
		w.signals("edge-1", []history.SentSignal{validSignal(54, "click")}, "rejected unknown_decision")
	})
	f("S13", "of the connection", func(w *scene) {
		s := validSignal(54, "click")
		s.ForeignDecision = true // the mark of the client is wrong
		w.signals("edge-1", []history.SentSignal{s}, "rejected unknown_decision")
	})
	f("H18", "revoked key", func(w *scene) {
		w.call(history.Event{Op: history.KeyRevoke, Connection: con, Key: "key_1"},
			history.Event{Kind: history.OK, Status: 204})
		w.clock += int64(16 * time.Second)
		w.call(history.Event{Op: history.Item, Edge: "edge-1", Item: "itm_2", Key: "key_1"},
			history.Event{Kind: history.OK, Revision: 1})
	})
}

// TestLegal checks that legal histories have no findings.
func TestLegal(t *testing.T) {
	f := func(name string, plant func(*scene)) {
		t.Run(name, func(t *testing.T) {
			w := newScene()
			plant(w)
			findings, _ := w.run()
			for _, f := range findings {
				t.Error(f)
			}
		})
	}
	batch := []history.SentSignal{validSignal(60, "click")}
	unanswered := func(w *scene) {
		w.call(history.Event{Op: history.Signals, Connection: con, Edge: "edge-1", Signals: batch},
			history.Event{Kind: history.Info, Status: 503})
	}
	f("503, and the signal is stored", func(w *scene) { unanswered(w); w.store(batch[0]) })
	f("503, and the signal is not stored", unanswered)
	f("503, and the resend is accepted",
		func(w *scene) { unanswered(w); w.store(batch[0]); w.signals("edge-2", batch, "accepted") })
	f("a canceled call, and its resend is a duplicate", func(w *scene) {
		unanswered(w)
		w.events = w.events[:len(w.events)-1]
		w.store(batch[0])
		w.signals("edge-2", batch, "duplicate")
	})
	f("the same id twice in a batch", func(w *scene) {
		w.store(batch[0])
		w.signals("edge-1", []history.SentSignal{batch[0], batch[0]}, "accepted", "duplicate")
	})
	f("an erasure between two attempts", addErased)
	f("rejected, then sent correctly", func(w *scene) {
		bad := batch[0]
		bad.Type, bad.Malformed = "look", true
		w.signals("edge-1", []history.SentSignal{bad}, "rejected invalid_type")
		w.signals("edge-1", batch, "accepted")
		w.store(batch[0])
	})
	f("two concurrent requests, the second began earlier", func(w *scene) {
		w.store(batch[0])
		w.signals("edge-1", batch, "accepted")
		w.signals("edge-2", batch, "duplicate")
		first, second := len(w.events)-4, len(w.events)-2
		w.events[first].At, w.events[second].At = w.events[second].At, w.events[first].At
		w.events[first], w.events[second] = w.events[second], w.events[first]
	})
	f("delivered twice with the same bytes", func(w *scene) {
		r := w.state.Engine.Receipts[3]
		r.Result = "exists"
		w.state.Engine.Receipts = append(w.state.Engine.Receipts, r)
	})
	f("a dead letter", func(w *scene) {
		w.state.Engine.Receipts = w.state.Engine.Receipts[1:]
		w.state.Dead = []collect.Delivery{{Connection: con, Kind: interaction, ID: "sig_0"}}
		w.state.Queue[0].Dead, w.state.Queue[0].ViewDead = 1, 1
		w.state.Metrics["relay-1"][`storefront_engine_dead_last_24h{kind="interaction"}`] = 1
	})
	f("Redis lost data, and a second accepted", func(w *scene) {
		w.opt.RedisFaults = true
		w.signals("edge-2", []history.SentSignal{validSignal(0, "impression")}, "accepted")
	})
	f("a clock that is ahead: the fold uses the arrival", func(w *scene) {
		late := validSignal(61, "update_quantity") // it arrives before the others with a time of tomorrow
		late.OccurredAt = start.Add(24 * time.Hour).Format(time.RFC3339Nano)
		w.store(late)
		last := len(w.state.Signals) - 1
		// before sig_2 and later signals
		w.state.Signals[last].Received = start.Add(-59 * time.Second).UnixMicro()
		w.signals("edge-1", []history.SentSignal{late}, "accepted")
		w.state.Lines[0].Revision = 6
		w.state.Engine.Receipts[last].CartLine = &collect.CartLine{Connection: con, Decision: dec,
			Item: "itm_1", Variant: "var_1", Revision: 6}
	})
	f("a restarted edge that cannot reach PostgreSQL trusts Redis", func(w *scene) {
		w.faults = append(w.faults, history.Fault{At: w.clock - 5, Until: w.clock + 5, Kind: "N1",
			Detail: "kill edge-1"},
			history.Fault{At: w.clock, Until: w.clock + 20, Kind: "N4", Detail: "edge-1>postgres"})
		w.clock += 10
		w.call(history.Event{Op: history.Item, Edge: "edge-1", Item: "itm_1"},
			history.Event{Kind: history.OK, Revision: 4})
	})
	f("overlapping reads", func(w *scene) {
		begin := w.events[len(w.events)-2].At
		w.call(history.Event{Op: history.Item, Edge: "edge-1", Item: "itm_7"},
			history.Event{Kind: history.OK, Revision: 9})
		w.call(history.Event{Op: history.Item, Edge: "edge-1", Item: "itm_7"},
			history.Event{Kind: history.OK, Revision: 8})
		w.events[len(w.events)-2].At = begin
	})
	f("an observation without a response is applied", func(w *scene) {
		w.observe("p-2", 1)
		w.events[len(w.events)-1].Kind, w.events[len(w.events)-1].ObservationResults = history.Info, nil
	})
	f("deadlocks before the run", func(w *scene) { w.state.Deadlocks, w.opt.Deadlocks = 3, 3 })
	f("a record that was written twice", func(w *scene) {
		w.state.Topic = append(w.state.Topic, w.state.Topic[0])
	})
	f("connections of other runs", func(w *scene) {
		w.state.Lines = append(w.state.Lines, collect.CartLine{Connection: "con_other", Decision: dec,
			Item: "itm_9"})
		w.state.Pending = append(w.state.Pending, collect.Delivery{Connection: "con_other", Kind: envelope,
			ID: "obs_1"})
		w.state.Topic = append(w.state.Topic, collect.TopicSignal{Connection: "con_other", ID: "sig_0"})
	})
}

// addErased adds a signal that was delivered with its visitor and again without it.
func addErased(w *scene) {
	s := validSignal(70, "impression")
	s.Canary, s.VisitorErased = "", true
	w.store(s)
	w.signals("edge-1", []history.SentSignal{s}, "accepted")
	last := w.state.Engine.Receipts[len(w.state.Engine.Receipts)-1]
	w.state.Engine.Receipts[len(w.state.Engine.Receipts)-1].Visitor = "vis_erased"
	last.Visitor, last.Digest = "", [16]byte{70}
	w.state.Engine.Receipts = append(w.state.Engine.Receipts, last)
}

func TestFigures(t *testing.T) {
	w := newScene()
	w.opt.RedisFaults = true
	w.signals("edge-2", []history.SentSignal{validSignal(0, "impression")}, "accepted")
	s := validSignal(60, "click")
	w.call(history.Event{Op: history.Signals, Connection: con, Signals: []history.SentSignal{s}},
		history.Event{Kind: history.Info, Status: 503})
	w.store(s)
	_, figures := w.run()
	if figures.ExtraAccepted != 1 || figures.StoredAfter["503"] != 1 || len(figures.StoredAfter) != 1 {
		t.Errorf("%+v", figures)
	}
}

func TestRecovery(t *testing.T) {
	w := newScene()
	w.events, w.faults, w.clock = nil, []history.Fault{{At: 0, Until: 1000, Kind: "N1"},
		{At: 5000, Until: 6000, Kind: "N1"}}, 1000
	batch := []history.SentSignal{validSignal(0, "impression")}
	w.signals("edge-1", batch, "duplicate") // ends at 1020
	w.call(history.Event{Op: history.Signals, Connection: con, Edge: "edge-2", Signals: batch},
		history.Event{Kind: history.Info})
	w.clock = 3000
	w.signals("edge-2", batch, "duplicate") // ends at 3020, 2020 after the fault
	w.clock = 7000
	w.call(history.Event{Op: history.Signals, Connection: con, Edge: "edge-1", Signals: batch},
		history.Event{Kind: history.Info})
	_, figures := w.run()
	if figures.Recovery.Count != 1 || figures.Recovery.Max != 2020 {
		t.Errorf("%+v", figures.Recovery)
	}
}
