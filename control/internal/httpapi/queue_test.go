package httpapi

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"storefront.internal/shared/deliveries"
)

func TestQueueViewLeavesOutWhatIsAbsent(t *testing.T) {
	t.Parallel()
	f := func(v deliveries.View, want string) {
		t.Helper()
		b := newBundle(t, allTokens())
		b.fake.view = v
		w := b.call("GET", "/internal/v1/brain-interactions/queue", backendToken, nil)
		if w.Code != 200 || w.Body.String() != want {
			t.Errorf("got  %s\nwant %s", w.Body, want)
		}
	}
	then := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	f(deliveries.View{ReadAt: then, Worker: deliveries.Worker{State: deliveries.Disabled}},
		`{"read_at":"2026-01-02T03:04:05Z","worker":{"state":"disabled"},"total":{"pending":0,"dead_last_24h":0,"unconfirmed_creations":0},"connections":[]}`)
	slice := deliveries.Stats{ConnectionID: "con_1", Pending: 3, OldestPendingAt: then,
		OldestPendingSeconds: 0, DeadLast24h: 2, UnconfirmedCreations: 1}
	total := slice
	total.ConnectionID = ""
	f(deliveries.View{ReadAt: then, Worker: deliveries.Worker{State: deliveries.Blocked, BlockedAt: then},
		Total: total, Connections: []deliveries.Stats{slice}},
		`{"read_at":"2026-01-02T03:04:05Z","worker":{"state":"blocked","blocked_at":"2026-01-02T03:04:05Z"},`+
			`"total":{"pending":3,"oldest_pending_at":"2026-01-02T03:04:05Z","oldest_pending_seconds":0,"dead_last_24h":2,"unconfirmed_creations":1},`+
			`"connections":[{"connection_id":"con_1","pending":3,"oldest_pending_at":"2026-01-02T03:04:05Z","oldest_pending_seconds":0,"dead_last_24h":2,"unconfirmed_creations":1}]}`)
}

func TestDeadReadsItsQuery(t *testing.T) {
	t.Parallel()
	f := func(query string, want int, q deliveries.DeadQuery) {
		t.Helper()
		b := newBundle(t, allTokens())
		w := b.call("GET", "/internal/v1/brain-interactions/dead?"+query, connectorToken, nil)
		if w.Code != want || b.fake.dead != q {
			t.Errorf("%s: %d, %+v", query, w.Code, b.fake.dead)
		}
	}
	f("", 200, deliveries.DeadQuery{})
	f("limit=1", 200, deliveries.DeadQuery{Limit: 1})
	f("limit=500&connection_id=con_1&cursor=abc&other=x&other=y", 200,
		deliveries.DeadQuery{ConnectionID: "con_1", Cursor: "abc", Limit: 500})
	f("kind=interaction", 200, deliveries.DeadQuery{Kind: deliveries.Interaction})
	f("kind=envelope&connection_id=con_1", 200,
		deliveries.DeadQuery{Kind: deliveries.Envelope, ConnectionID: "con_1"})
	for _, bad := range []string{
		"limit=0", "limit=501", "limit=-1", "limit=x", "limit=", "limit=1&limit=2", "limit=1.0",
		"limit=9999999999999999999",
		"connection_id=", "connection_id=str_1", "connection_id=con_1&connection_id=con_2",
		"kind=", "kind=webhook", "kind=Envelope", "kind=envelope&kind=envelope",
		"cursor=a&cursor=b", "a=%zz", "a;b=1",
	} {
		f(bad, 400, deliveries.DeadQuery{})
	}
	b := newBundle(t, allTokens())
	w := b.call("GET", "/internal/v1/brain-interactions/dead?kind=webhook", connectorToken, nil)
	if !strings.Contains(w.Body.String(), "kind is interaction or envelope.") {
		t.Errorf("an unknown kind: %s", w.Body)
	}
	w = b.call("GET", "/internal/v1/brain-interactions/dead", connectorToken, nil)
	want := `{"dead":[{"signal_id":"sig_1","connection_id":"con_1","died_at":"2026-03-01T11:00:00.123456Z","attempts":8,"reason":"rejected"}],"cursor":"next"}`
	if w.Body.String() != want {
		t.Errorf("got %s", w.Body)
	}
}

func TestReplayReadsItsBody(t *testing.T) {
	t.Parallel()
	f := func(body string, want int, q deliveries.ReplayQuery, pointers ...string) {
		t.Helper()
		b := newBundle(t, allTokens())
		w := b.call("POST", "/internal/v1/brain-interactions/dead/replay", connectorToken,
			strings.NewReader(body))
		if w.Code != want || !reflect.DeepEqual(b.fake.replay, q) {
			t.Errorf("%.60s: %d, %+v", body, w.Code, b.fake.replay)
		} else if want == 400 {
			checkPointers(t, body, w, pointers)
		}
	}
	none := deliveries.ReplayQuery{}
	f(`{"connection_id":"con_1"}`, 202, deliveries.ReplayQuery{ConnectionID: "con_1"})
	f(`{"connection_id":null,"signal_ids":["sig_1","sig_2"]}`, 202,
		deliveries.ReplayQuery{IDs: []string{"sig_1", "sig_2"}})
	f(`{"kind":"interaction","connection_id":"con_1"}`, 202,
		deliveries.ReplayQuery{Kind: deliveries.Interaction, ConnectionID: "con_1"})
	f(`{"kind":"envelope","signal_ids":["obs_1"]}`, 202,
		deliveries.ReplayQuery{Kind: deliveries.Envelope, IDs: []string{"obs_1"}})
	f(`{"kind":"envelope","signal_ids":["obs_1","sig_1"]}`, 400, none, "/signal_ids/1")
	f(`{"signal_ids":["obs_1"]}`, 400, none, "/signal_ids/0")
	f(`{"kind":"envelope"}`, 400, none, "")
	f(`{"kind":"webhook","connection_id":"con_1"}`, 400, none, "/kind")
	f(`{"kind":2,"connection_id":"con_1"}`, 400, none, "/kind")
	f(`{}`, 400, none, "")
	f(`{"connection_id":null,"signal_ids":null}`, 400, none, "")
	f(`{"connection_id":"con_1","signal_ids":[]}`, 400, none, "/signal_ids")
	f(`{"connection_id":"x","signal_ids":["sig_1","y"]}`, 400, none, "/connection_id", "/signal_ids/1")
	f(`{"connection_id":1}`, 400, none, "/connection_id")
	ids, err := json.Marshal(strings.Split(strings.Repeat("sig_1,", 501), ",")[:501])
	if err != nil {
		t.Fatal(err)
	}
	f(`{"signal_ids":`+string(ids)+`}`, 400, none, "/signal_ids")
}
