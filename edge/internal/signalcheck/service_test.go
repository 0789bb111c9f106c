package signalcheck

import (
	"errors"
	"strings"
	"testing"

	"storefront.internal/shared/fault"
	"storefront.internal/shared/ident"
)

type ownDecisions struct{}

func (ownDecisions) Verify(_ ident.ConnectionID, id string) bool {
	return strings.HasPrefix(id, "dec_own")
}

func TestEachElementIsJudged(t *testing.T) {
	t.Parallel()
	charged := 0
	got, err := New(ownDecisions{}).Check("con_1", []byte(`{"signals":[
		{"signal_id":"sig_1","type":"click","occurred_at":"2026-11-22T10:00:00Z","decision_id":"dec_own","item_id":"itm_1"},
		{"signal_id":"sig_2","type":"purchase","occurred_at":"yesterday","decision_id":"dec_other","item_id":"x","quantity":0},
		{"signal_id":"sig_3","type":"impression","occurred_at":"2026-11-22T10:00:00Z","decision_id":"dec_own","visitor":7},
		{"signal_id":"sig_4","type":"glance","occurred_at":"2026-11-22T10:00:00Z","decision_id":"dec_own","quantity":1},
		12]}`), func(n int) { charged = n })
	if err != nil {
		t.Fatal(err)
	}
	want := `{"results":[` +
		`{"index":0,"signal_id":"sig_1","status":"valid"},` +
		`{"index":1,"signal_id":"sig_2","status":"rejected","reason":"invalid_occurred_at","errors":[` +
		`{"code":"invalid_occurred_at","detail":"` + "`occurred_at`" + ` must be an RFC 3339 time with a zone, of the years 2000 to 2099.","pointer":"/signals/1/occurred_at"},` +
		`{"code":"invalid_item_id","detail":"` + "`item_id`" + ` must be itm_ and 1 to 64 characters of A-Z a-z 0-9 _ -.","pointer":"/signals/1/item_id"},` +
		`{"code":"invalid_quantity","detail":"` + "`quantity`" + ` must be an integer from 1 (0 for update_quantity) to 1000000.","pointer":"/signals/1/quantity"},` +
		`{"code":"unknown_decision","detail":"` + "`decision_id`" + ` must be of a recommendation that was served to this connection.","pointer":"/signals/1/decision_id"}]},` +
		`{"index":2,"signal_id":"sig_3","status":"valid","errors":[` +
		`{"code":"discarded_visitor","detail":"` + "`visitor`" + ` is malformed. The signal is recorded without it.","pointer":"/signals/2/visitor"}]},` +
		`{"index":3,"signal_id":"sig_4","status":"rejected","reason":"invalid_type","errors":[` +
		`{"code":"invalid_type","detail":"` + "`type`" + ` must be one of impression, click, add_to_cart, remove_from_cart, update_quantity, purchase, dismiss.","pointer":"/signals/3/type"}]},` +
		`{"index":4,"signal_id":null,"status":"rejected","reason":"invalid_signal","errors":[` +
		`{"code":"invalid_signal","detail":"An element must be an object.","pointer":"/signals/4"}]}]}`
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if charged != 5 {
		t.Errorf("%d signals were charged", charged)
	}
}

func TestABodyThatIsNoBatch(t *testing.T) {
	t.Parallel()
	none := func(int) { t.Error("charged") }
	for body, code := range map[string]fault.Code{
		`{"signals":[]}`: fault.InvalidRequest,
		`{"signals":[` + strings.Repeat("1,", 50) + `1]}`: fault.SignalBatchLimitExceeded,
	} {
		_, err := New(ownDecisions{}).Check("con_1", []byte(body), none)
		if f := new(fault.Error); !errors.As(err, &f) || f.Code != code {
			t.Errorf("%s: %v", body, err)
		}
	}
}
