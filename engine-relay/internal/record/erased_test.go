package record

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"storefront.internal/shared/ident"
	"storefront.internal/shared/signal"
)

// visit is a request of two signals of a visitor, received at that time; the second is a purchase.
func visit(visitor string, at time.Time) *signal.Record {
	r := &signal.Record{RecordID: "018f8b0e-0000-7000-8000-000000000001", ConnectionID: "con_a", StoreID: "str_a", ReceivedAt: at,
		Audit: signal.Audit{IP: "203.0.113.9", UserAgent: "agent", AcceptLanguage: "es", Origin: "o", Referer: "r", Crawler: true}}
	for i, kind := range []signal.Type{signal.Click, signal.Purchase} {
		s := signal.Signal{ID: ident.SignalID("sig_" + string(kind)), Type: kind, OccurredAt: at, DecisionID: "dec_a", ItemID: "itm_a",
			Visitor: &signal.Visitor{VisitorID: ident.VisitorID(visitor), SessionID: "ses_1"}, Client: json.RawMessage(`{"timezone":"UTC"}`)}
		if kind == signal.Purchase {
			s.OrderExternalID = "order<1>"
		}
		r.Signals = append(r.Signals, signal.Recorded{Index: i, Signal: s})
	}
	return r
}

func erasing(s signal.Subject, id string) Erased {
	return Erased{signal.ErasureDigest("con_a", s, id): noon}
}

func TestWhatIsMeantByAnErasure(t *testing.T) {
	t.Parallel()
	before, after := noon.Add(-time.Microsecond), noon
	for name, c := range map[string]struct {
		erased  Erased
		at      time.Time
		visitor [2]bool // of the click and of the purchase is kept
		audit   bool
		buyers  int
	}{
		"the visitor":              {erasing(signal.VisitorSubject, "vis_a"), before, [2]bool{false, false}, false, 0},
		"the visitor, later":       {erasing(signal.VisitorSubject, "vis_a"), after, [2]bool{true, true}, true, 0},
		"another visitor":          {erasing(signal.VisitorSubject, "vis_b"), before, [2]bool{true, true}, true, 0},
		"an order of that name":    {erasing(signal.OrderSubject, "vis_a"), before, [2]bool{true, true}, true, 0},
		"everybody":                {erasing(signal.ConnectionSubject, ""), before, [2]bool{false, false}, false, 0},
		"everybody, later":         {erasing(signal.ConnectionSubject, ""), after, [2]bool{true, true}, true, 0},
		"the buyer":                {erasing(signal.OrderSubject, "order<1>"), before, [2]bool{true, false}, false, 1},
		"the buyer, later":         {erasing(signal.OrderSubject, "order<1>"), after, [2]bool{true, true}, true, 0},
		"the visitor of elsewhere": {Erased{signal.ErasureDigest("con_b", signal.VisitorSubject, "vis_a"): noon}, before, [2]bool{true, true}, true, 0},
	} {
		r := visit("vis_a", c.at)
		buyers, meant := c.erased.strip(r)
		if len(buyers) != c.buyers || meant == c.audit {
			t.Errorf("%s: %d buyers, meant %v", name, len(buyers), meant)
		}
		for i, kept := range c.visitor {
			if (r.Signals[i].Signal.Visitor != nil) != kept || (r.Signals[i].Signal.Client != nil) != c.audit {
				t.Errorf("%s: signal %d is %+v", name, i, r.Signals[i].Signal)
			}
		}
		if (r.Audit == signal.Audit{Crawler: true}) == c.audit || !r.Audit.Crawler {
			t.Errorf("%s: audit %+v", name, r.Audit)
		}
	}
}

// TestABodyLosesItsVisitorAndNothingElse: every other byte stays, wherever the clocks of edge and store are.
func TestABodyLosesItsVisitorAndNothingElse(t *testing.T) {
	t.Parallel()
	erased, early, late := erasing(signal.VisitorSubject, "vis_a"), noon.Add(-time.Second), noon.Add(time.Second)
	for _, c := range []struct {
		erased             Erased
		received, enqueued time.Time
		goes               bool
	}{
		{erased, early, early, true}, {erased, early, late, true}, {erased, late, early, true}, {erased, late, late, false},
		{erasing(signal.OrderSubject, "order<1>"), early, late, true}, {erasing(signal.VisitorSubject, "vis_b"), early, early, false},
	} {
		r := visit("vis_a", c.received)
		e := &entry{request: &request{record: r}, signal: &r.Signals[1].Signal}
		with := appendInteraction(nil, e, nil, []byte(`{"visitor":{"visitor_id":"engine's"}}`))
		e.signal.Visitor = nil
		without := appendInteraction(nil, e, nil, []byte(`{"visitor":{"visitor_id":"engine's"}}`))
		if got := string(c.erased.Body(with, c.enqueued)); c.goes && got != string(without) || !c.goes && got != "" {
			t.Errorf("received %v, enqueued %v: %s", c.received, c.enqueued, got)
		}
		if got := erased.Body(without, c.enqueued); got != nil {
			t.Errorf("without a visitor: %s", got)
		}
		for _, mark := range [][]byte{VisitorMark(), OrderMark("order<1>")} {
			if !strings.Contains(string(with), string(mark)) {
				t.Errorf("%s does not hold %s", with, mark)
			}
		}
	}
	for object, want := range map[string]string{`{"a":1,"b":[2]}`: `{"b":[2]}`, `{"a":{}}`: `{}`, `{"b":1}`: "", `[]`: "", `{"a"`: ""} {
		if got := string(without([]byte(object), "a")); got != want {
			t.Errorf("%s: %s, want %s", object, got, want)
		}
	}
}

func TestParkedBytesAreRedacted(t *testing.T) {
	t.Parallel()
	erased := erasing(signal.VisitorSubject, "vis_a")
	r := visit("vis_a", noon.Add(-time.Second))
	d := &signal.Decision{DecisionID: "dec_a", ConnectionID: "con_a", StoreID: "str_a", ServedAt: r.ReceivedAt, Visitor: r.Signals[0].Signal.Visitor}
	for _, b := range [][]byte{signal.AppendRecord(nil, r), signal.AppendDecision(nil, d)} {
		got, readable := erased.Redact(b)
		if !readable || strings.Contains(string(got), "vis_a") || strings.Contains(string(got), "203.0.113.9") || !strings.Contains(string(got), "dec_a") {
			t.Errorf("%v: %s", readable, got)
		}
		if same, _ := erasing(signal.VisitorSubject, "vis_b").Redact(b); string(same) != string(b) {
			t.Errorf("of another: %s", same)
		}
	}
	if got, readable := erased.Redact([]byte("vis_a")); readable || string(got) != "vis_a" {
		t.Errorf("%v: %s", readable, got)
	}
}

// TestTheSinkForgetsBuyers: who is known by their order alone is erased as a visitor, once, and no body brings them back.
func TestTheSinkForgetsBuyers(t *testing.T) {
	t.Parallel()
	m := &memory{erased: erasing(signal.OrderSubject, "order<1>")}
	stored(t, m, Message{Topic: "t", Value: signal.AppendRecord(nil, visit("vis_a", noon.Add(-time.Second)))})
	if want := (Visitor{"con_a", "vis_a", noon}); len(m.forget) != 1 || m.forget[0] != want {
		t.Errorf("forgotten: %+v", m.forget)
	}
	if len(m.signals) != 2 || m.bodies != 2 {
		t.Errorf("%d signals, %d bodies", len(m.signals), m.bodies)
	}
}
