package httpapi

import (
	"context"
	"net/http"
	"testing"

	"storefront.internal/control/internal/parked"
	"storefront.internal/shared/fault"
)

// fakeParked has one record, 7.
type fakeParked struct{ *fake }

func parkedRecord() parked.Record {
	return parked.Record{ID: 7, Topic: "signals", Partition: 3, Offset: 99, ParkedAt: at(), Reason: "refused",
		SQLState: "22021", ConnectionID: oneConnection, SignalID: "sig_1", ReplayFailedAt: at()}
}

func (f fakeParked) List(_ context.Context, q parked.Query) (parked.Page, error) {
	f.parked = q
	return parked.Page{Records: []parked.Record{parkedRecord(), {ID: 8, Topic: "t", Reason: "malformed",
		ReplayRequestedAt: at()}}, Next: 8}, f.fail
}

func (f fakeParked) Show(_ context.Context, id int64) (parked.Record, error) {
	r := parkedRecord()
	r.Bytes = []byte(canaryText)
	return r, f.one(id)
}

func (f fakeParked) Replay(_ context.Context, id int64) error { return f.one(id) }

func (f fakeParked) Drop(_ context.Context, id int64, reason string) error {
	f.dropReason = reason
	return f.one(id)
}

func (f fakeParked) one(id int64) error {
	if id != 7 {
		return fault.New(fault.NotFound, "")
	}
	return f.fail
}

func parkedCases(large string) []documented {
	const all, one = "/internal/v1/parked", "/internal/v1/parked/7"
	const reason = `{"reason":"a load test"}`
	post, get, del := http.MethodPost, http.MethodGet, http.MethodDelete
	done := fails(fault.New(fault.AlreadyReplayed, ""))
	return []documented{
		{"list_parked", get, all, connectorToken, "", 200, nil},
		{"list_parked", get, all + "?limit=0", connectorToken, "", 400, nil},
		{"list_parked", get, all, backendToken, "", 401, nil},
		{"show_parked", get, one, connectorToken, "", 200, nil},
		{"show_parked", get, one, connectorToken, "gzip", 400, nil},
		{"show_parked", get, one, engineToken, "", 401, nil},
		{"show_parked", get, all + "/8", connectorToken, "", 404, nil},
		{"drop_parked", del, one, connectorToken, reason, 204, nil},
		{"drop_parked", del, one, connectorToken, `{}`, 400, nil},
		{"drop_parked", del, one, "", reason, 401, nil},
		{"drop_parked", del, all + "/8", connectorToken, reason, 404, nil},
		{"drop_parked", del, one, connectorToken, reason, 409, done},
		{"drop_parked", del, one, connectorToken, large, 413, nil},
		{"replay_parked", post, one + "/replay", connectorToken, "", 202, nil},
		{"replay_parked", post, one + "/replay", connectorToken, "gzip", 400, nil},
		{"replay_parked", post, one + "/replay", backendToken, "", 401, nil},
		{"replay_parked", post, all + "/8/replay", connectorToken, "", 404, nil},
		{"replay_parked", post, one + "/replay", connectorToken, "", 409, done},
	}
}

func TestListParkedReadsItsQuery(t *testing.T) {
	t.Parallel()
	f := func(query string, want int, q parked.Query) {
		t.Helper()
		b := newBundle(t, allTokens())
		w := b.call("GET", "/internal/v1/parked?"+query, connectorToken, nil)
		if w.Code != want || b.fake.parked != q {
			t.Errorf("%s: %d, %+v", query, w.Code, b.fake.parked)
		}
	}
	f("", 200, parked.Query{})
	f("topic=storefront.signals.v1&cursor=7&limit=500", 200,
		parked.Query{Topic: "storefront.signals.v1", After: 7, Limit: 500})
	for _, bad := range []string{"limit=0", "limit=501", "limit=", "limit=1&limit=2", "cursor=", "cursor=x",
		"cursor=-1", "cursor=07", "cursor=9223372036854775808", "topic=", "topic=a%00b",
		"topic=a/b", "a;b=1"} {
		f(bad, 400, parked.Query{})
	}
	b := newBundle(t, allTokens())
	for _, id := range []string{"0", "07", "x", "-7", "7.0", "9223372036854775808"} {
		if w := b.call("GET", "/internal/v1/parked/"+id, connectorToken, nil); w.Code != 404 {
			t.Errorf("id %s: %d", id, w.Code)
		}
	}
}

func TestParkedRecordsAreShown(t *testing.T) {
	t.Parallel()
	b := newBundle(t, allTokens())
	const record = `"topic":"signals","partition":3,"offset":99,"at":"2026-03-01T11:00:00.123456Z",` +
		`"reason":"refused","sqlstate":"22021","connection_id":"con_1","signal_id":"sig_1",` +
		`"replay_failed_at":"2026-03-01T11:00:00.123456Z"`
	w := b.call("GET", "/internal/v1/parked", connectorToken, nil)
	if want := `{"parked":[{"parked_id":"7",` + record + `},{"parked_id":"8","topic":"t","partition":0,` +
		`"offset":0,"at":"0001-01-01T00:00:00Z","reason":"malformed",` +
		`"replay_requested_at":"2026-03-01T11:00:00.123456Z"}],"cursor":"8"}`; w.Body.String() != want {
		t.Errorf("got %s", w.Body)
	}
	w = b.call("GET", "/internal/v1/parked/7", connectorToken, nil)
	if want := `{"parked_id":"7",` + record + `,"bytes":"Y2FuYXJ5LWJvZHktdGV4dA=="}`; w.Body.String() != want {
		t.Errorf("got %s", w.Body)
	}
}
