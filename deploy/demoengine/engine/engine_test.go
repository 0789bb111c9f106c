package engine

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

type harness struct {
	t      *testing.T
	engine *Engine
	url    string
	client *http.Client
}

func newHarness(t *testing.T) *harness {
	t.Helper()
	e := New("right", func() time.Time { return time.Unix(1_000_000, 0) })
	s := httptest.NewServer(e.Handler())
	t.Cleanup(s.Close)
	return &harness{t: t, engine: e, url: s.URL, client: s.Client()}
}

func (h *harness) post(path, token, body string) (status int, answer string, err error) {
	h.t.Helper()
	r, err := http.NewRequest(http.MethodPost, h.url+path, strings.NewReader(body))
	if err != nil {
		h.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	res, err := h.client.Do(r)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	return res.StatusCode, strings.TrimSpace(string(text)), err
}

const one = `{"interactions":[{"signal_id":"sig_1","connection_id":"con_1","extra": 1}]}`

func TestInteractions(t *testing.T) {
	t.Parallel()
	f := func(name, token, body string, status int, answer string) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newHarness(t)
			s, a, err := b.post("/v1/interactions", token, body)
			if err != nil || s != status || !strings.Contains(a, answer) {
				t.Errorf("answer %d %s %v, want %d %s", s, a, err, status, answer)
			}
		})
	}
	f("new", "right", one, 200, `{"results":[{"index":0,"status":"created"}]}`)
	f("wrong token", "wrong", one, 401, "unauthorized")
	f("no json", "right", `{`, 400, "invalid_request")
	f("empty", "right", `{"interactions":[]}`, 400, "invalid_request")
	f("no id", "right", `{"interactions":[{"signal_id":"sig_1"}]}`, 400, "invalid_request")
	f("same id twice", "right",
		`{"interactions":[{"signal_id":"s","connection_id":"c"},{"signal_id":"s","connection_id":"c"},`+
			`{"signal_id":"s","connection_id":"d"}]}`,
		200, `[{"index":0,"status":"created"},{"index":1,"status":"exists"},{"index":2,"status":"created"}]`)
	f("too many", "right",
		`{"interactions":[`+strings.Repeat(`{"signal_id":"s","connection_id":"c"},`,
			200)+`{"signal_id":"s","connection_id":"c"}]}`, 422, "")
}

func TestBehaviour(t *testing.T) {
	t.Parallel()
	b := newHarness(t)
	behave := func(body string, want int) {
		t.Helper()
		if s, a, err := b.post("/debug/behaviour", "", body); s != want || err != nil {
			t.Fatalf("behaviour %s: %d %s %v", body, s, a, err)
		}
	}
	send := func(want int) {
		t.Helper()
		if s, a, err := b.post("/v1/interactions", "right", one); s != want || (err == nil) != (want != 0) {
			t.Fatalf("answer %d %s %v, want %d", s, a, err, want)
		}
	}
	behave(`{"interactions":{"unknown":1}}`, 400)
	behave(`{"interactions":{"status":503,"retry_after":1,"times":2}}`, 204)
	send(503)
	send(503)
	if n := len(b.engine.Receipts(0)); n != 0 {
		t.Fatalf("%d receipts of refused requests", n)
	}
	behave(`{"interactions":{"reject":["sig_1"],"times":1}}`, 204)
	send(200)
	behave(`{"interactions":{"after_effect":true,"hang_ms":1,"times":1}}`, 204)
	send(0)
	behave(`{"interactions":{"after_effect":true,"status":500}}`, 204)
	send(500)
	behave(`{"interactions":{"answer":"song"}}`, 400)
	behave(`{"interactions":{"answer":"partial","times":1}}`, 204)
	if s, a, err := b.post("/v1/interactions", "right", one); s != 200 || err == nil ||
		json.Valid([]byte(a)) {
		t.Errorf("a partial answer: %d %s %v", s, a, err)
	}
	behave(`{"interactions":{"answer":"html","times":1}}`, 204)
	if s, a, err := b.post("/v1/interactions", "right", one); s != 200 || err != nil ||
		!strings.HasPrefix(a, "<") {
		t.Errorf("a page: %d %s %v", s, a, err)
	}
	behave(`{"interactions":{"connection_id":"con_1","status":503,"times":1}}`, 204)
	if s, a, err := b.post("/v1/interactions", "right",
		strings.ReplaceAll(one, "con_1", "con_10")); s != 200 || err != nil {
		t.Errorf("another connection: %d %s %v", s, a, err)
	}
	send(503)
	behave(`{}`, 204)
	send(200)
	for id, want := range map[string]int{"sig_1": 204, "sig_2": 404} {
		if res, err := http.Get(b.url + "/debug/known?connection_id=con_1&signal_id=" + id); err != nil ||
			res.StatusCode != want {
			t.Errorf("%s: %v %v", id, res, err)
		} else {
			res.Body.Close()
		}
	}
	got := ""
	for _, r := range b.engine.Receipts(0) {
		got += r.Result + " "
	}
	if want := "rejected created exists exists created exists "; got != want {
		t.Errorf("receipts %q, want %q", got, want)
	}
}

func TestDebugAnswersWhatArrivedByteForByte(t *testing.T) {
	t.Parallel()
	b := newHarness(t)
	for range 3 {
		if s, _, err := b.post("/v1/interactions", "right", one); s != 200 || err != nil {
			t.Fatal(s, err)
		}
	}
	if s, _, err := b.post("/v1/observations", "right", `[{"id":"obs_1"}]`); s != 202 || err != nil {
		t.Fatal(s, err)
	}
	res, err := http.Get(b.url + "/debug/interactions?since=1")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	var page struct {
		Interactions []Receipt `json:"interactions"`
	}
	if err := json.NewDecoder(res.Body).Decode(&page); err != nil {
		t.Fatal(err)
	}
	if len(page.Interactions) != 2 || page.Interactions[0].Result != "exists" {
		t.Errorf("since=1: %+v", page.Interactions)
	}
	if got := string(b.engine.Receipts(0)[0].Interaction); got != `{"signal_id":"sig_1",`+
		`"connection_id":"con_1","extra": 1}` {
		t.Errorf("kept %s", got)
	}
	if n := len(b.engine.Observations(0)); n != 1 {
		t.Errorf("%d observations", n)
	}
}

func TestRecommend(t *testing.T) {
	t.Parallel()
	b := newHarness(t)
	first := b.engine.items[0].ItemID
	s, a, err := b.post("/v1/recommendations", "right",
		`{"decision_id":"dec_1","item_id":"`+first+`","limit":3}`)
	if s != 200 || err != nil || strings.Contains(a, first) || strings.Count(a, "item_id") != 3 ||
		!strings.Contains(a, "rec-dec_1") {
		t.Errorf("answer %d %s %v", s, a, err)
	}
}
