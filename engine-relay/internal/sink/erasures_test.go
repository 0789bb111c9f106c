package sink

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"storefront.internal/shared/ident"
	"storefront.internal/shared/signal"
)

// visit is a request of two signals of a visitor, received at that time; the second is a purchase.
func visit(visitor string, at time.Time) *signal.Record {
	r := &signal.Record{
		RecordID:     "018f8b0e-0000-7000-8000-000000000001",
		ConnectionID: "con_a",
		StoreID:      "str_a",
		ReceivedAt:   at,
		Audit: signal.Audit{
			IP:             "203.0.113.9",
			UserAgent:      "agent",
			AcceptLanguage: "es",
			Origin:         "o",
			Referer:        "r",
			Crawler:        true,
		},
	}
	for i, kind := range []signal.Type{signal.Click, signal.Purchase} {
		s := signal.Signal{
			ID:         ident.SignalID("sig_" + string(kind)),
			Type:       kind,
			OccurredAt: at,
			DecisionID: "dec_a",
			ItemID:     "itm_a",
			Visitor: &signal.Visitor{
				VisitorID: ident.VisitorID(visitor),
				SessionID: "ses_1",
			},
			Client: json.RawMessage(`{"timezone":"UTC"}`),
		}
		if kind == signal.Purchase {
			s.OrderExternalID = "order<1>"
		}
		r.Signals = append(r.Signals, signal.Recorded{Index: i, Signal: s})
	}
	return r
}

func erasing(s signal.Subject, id string) Erasures {
	return Erasures{signal.ErasureDigest("con_a", s, id): noon}
}

func TestWhatAnErasureCovers(t *testing.T) {
	t.Parallel()
	before, after := noon.Add(-time.Microsecond), noon
	elsewhere := Erasures{signal.ErasureDigest("con_b", signal.VisitorSubject, "vis_a"): noon}
	both, first, none := [2]bool{true, true}, [2]bool{true, false}, [2]bool{}
	for name, c := range map[string]struct {
		erased  Erasures
		at      time.Time
		visitor [2]bool // of the click and of the purchase is kept
		audit   bool
		buyers  int
	}{
		"the visitor":              {erasing(signal.VisitorSubject, "vis_a"), before, none, false, 0},
		"the visitor, later":       {erasing(signal.VisitorSubject, "vis_a"), after, both, true, 0},
		"another visitor":          {erasing(signal.VisitorSubject, "vis_b"), before, both, true, 0},
		"an order of that name":    {erasing(signal.OrderSubject, "vis_a"), before, both, true, 0},
		"whole connection":         {erasing(signal.ConnectionSubject, ""), before, none, false, 0},
		"whole connection, later":  {erasing(signal.ConnectionSubject, ""), after, both, true, 0},
		"the buyer":                {erasing(signal.OrderSubject, "order<1>"), before, first, false, 1},
		"the buyer, later":         {erasing(signal.OrderSubject, "order<1>"), after, both, true, 0},
		"the visitor of elsewhere": {elsewhere, before, both, true, 0},
	} {
		given := visit("vis_a", c.at)
		r, buyers := c.erased.redactRecord(given)
		if len(buyers) != c.buyers || (r == given) != c.audit {
			t.Errorf("%s: %d buyers, unchanged %v", name, len(buyers), r == given)
		}
		if !reflect.DeepEqual(given, visit("vis_a", c.at)) {
			t.Errorf("%s: the given record is changed: %+v", name, given)
		}
		for i, kept := range c.visitor {
			if (r.Signals[i].Visitor != nil) != kept ||
				(r.Signals[i].Client != nil) != c.audit {
				t.Errorf("%s: signal %d is %+v", name, i, r.Signals[i].Signal)
			}
		}
		if (r.Audit == signal.Audit{Crawler: true}) == c.audit || !r.Audit.Crawler {
			t.Errorf("%s: audit %+v", name, r.Audit)
		}
	}
}

// TestABodyLosesItsVisitorAndNothingElse: every other byte stays, for any difference between the clocks of
// edge and PostgreSQL.
func TestABodyLosesItsVisitorAndNothingElse(t *testing.T) {
	t.Parallel()
	erased, early, late := erasing(
		signal.VisitorSubject,
		"vis_a",
	), noon.Add(
		-time.Second,
	), noon.Add(
		time.Second,
	)
	for _, c := range []struct {
		erased             Erasures
		received, enqueued time.Time
		goes               bool
	}{
		{erased, early, early, true}, {erased, early, late, true},
		{erased, late, early, true}, {erased, late, late, false},
		{erasing(signal.OrderSubject, "order<1>"), early, late, true},
		{erasing(signal.VisitorSubject, "vis_b"), early, early, false},
	} {
		r := visit("vis_a", c.received)
		e := &pendingSignal{request: &request{record: r}, signal: &r.Signals[1].Signal}
		with := appendInteraction(nil, e, nil, []byte(`{"visitor":{"visitor_id":"engine's"}}`))
		e.signal.Visitor = nil
		without := appendInteraction(nil, e, nil, []byte(`{"visitor":{"visitor_id":"engine's"}}`))
		if got := string(c.erased.RedactBody(with, c.enqueued)); c.goes && got != string(without) ||
			!c.goes && got != "" {
			t.Errorf("received %v, enqueued %v: %s", c.received, c.enqueued, got)
		}
		if got := erased.RedactBody(without, c.enqueued); got != nil {
			t.Errorf("without a visitor: %s", got)
		}
		for _, mark := range [][]byte{VisitorPattern(), OrderPattern("order<1>")} {
			if !strings.Contains(string(with), string(mark)) {
				t.Errorf("%s does not hold %s", with, mark)
			}
		}
	}
	for object, want := range map[string]string{`{"a":1,"b":[2]}`: `{"b":[2]}`, `{"a":{}}`: `{}`, `{"b":1}`: "", `[]`: "", `{"a"`: ""} {
		if got := string(removeMember([]byte(object), "a")); got != want {
			t.Errorf("%s: %s, want %s", object, got, want)
		}
	}
}

func TestParkedBytesAreRedacted(t *testing.T) {
	t.Parallel()
	erased := erasing(signal.VisitorSubject, "vis_a")
	r := visit("vis_a", noon.Add(-time.Second))
	d := &signal.Decision{
		DecisionID:   "dec_a",
		ConnectionID: "con_a",
		StoreID:      "str_a",
		ServedAt:     r.ReceivedAt,
		Visitor:      r.Signals[0].Visitor,
	}
	for _, b := range [][]byte{signal.AppendRecord(nil, r), signal.AppendDecision(nil, d)} {
		got, readable := erased.RedactBytes(b)
		if !readable || strings.Contains(string(got), "vis_a") ||
			strings.Contains(string(got), "203.0.113.9") ||
			!strings.Contains(string(got), "dec_a") {
			t.Errorf("%v: %s", readable, got)
		}
		if same, _ := erasing(signal.VisitorSubject, "vis_b").RedactBytes(b); string(same) != string(b) {
			t.Errorf("of another: %s", same)
		}
	}
	if got, readable := erased.RedactBytes([]byte("vis_a")); readable || string(got) != "vis_a" {
		t.Errorf("%v: %s", readable, got)
	}
}

// TestTheSinkRequestsTheErasureOfBuyers: a visitor that is known only by an order is erased, once, and no
// body has the visitor.
func TestTheSinkRequestsTheErasureOfBuyers(t *testing.T) {
	t.Parallel()
	m := &memory{erased: erasing(signal.OrderSubject, "order<1>")}
	stored(t, m, Message{Topic: "t", Value: signal.AppendRecord(nil, visit("vis_a", noon.Add(-time.Second)))})
	if want := (VisitorErasure{"con_a", "vis_a", noon}); len(m.forget) != 1 || m.forget[0] != want {
		t.Errorf("forgotten: %+v", m.forget)
	}
	if len(m.signals) != 2 || len(m.enqueued) != 2 {
		t.Errorf("%d signals, %d bodies", len(m.signals), len(m.enqueued))
	}
}

// TestARepeatedTransactionStillErasesBuyers: a transaction that fails after it applied the erasures changes
// nothing of the batch, so that the next attempt finds the buyers and the personal data again.
func TestARepeatedTransactionStillErasesBuyers(t *testing.T) {
	t.Parallel()
	for name, failure := range map[string]string{"a lost connection": "57P01", "a refused value": "22021"} {
		m := &memory{erased: erasing(signal.OrderSubject, "order<1>")}
		failures := 0
		m.refuse = func([]ident.SignalID) error {
			if failures++; failures == 1 {
				return refused(failure)
			}
			return nil
		}
		stored(
			t,
			m,
			Message{Topic: "t", Value: signal.AppendRecord(nil, visit("vis_a", noon.Add(-time.Second)))},
		)
		if failures < 2 || len(m.signals) != 2 {
			t.Errorf("%s: %d attempts, %d signals", name, failures, len(m.signals))
		}
		if want := (VisitorErasure{"con_a", "vis_a", noon}); len(m.forget) == 0 || m.forget[0] != want {
			t.Errorf("%s: erasures requested: %+v", name, m.forget)
		}
		for _, body := range m.enqueued {
			if strings.Contains(string(body), "vis_a") == strings.Contains(string(body), "order") {
				t.Errorf("%s: enqueued %s", name, body)
			}
		}
	}
}
