package collect

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"storefront.internal/deploy/demoengine/engine"
)

func fresh() *collector {
	return &collector{state: &State{Ledger: map[string]int{}, Lag: map[string]int64{},
		Metrics: map[string]map[string]float64{}}, interned: map[string]string{}}
}

// TestEngine checks what is read from the demo engine: the digest of each body, cart lines and 401s.
func TestEngine(t *testing.T) {
	e := engine.New("right", nil)
	server := httptest.NewServer(e.Handler())
	defer server.Close()
	post := func(path, token, body string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+path,
			strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+token)
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
	}
	one := `{"signal_id":"sig_1","connection_id":"con_1","decision_id":"dec_1",` +
		`"visitor":{"visitor_id":"vis_x"},` +
		`"cart_line":{"item_id":"itm_1","quantity":2,"revision":3}}`
	post("/v1/interactions", "right", `{"interactions":[`+one+`]}`)
	post("/v1/interactions", "wrong", `{"interactions":[`+one+`]}`)
	post("/v1/interactions", "right",
		`{"interactions":[`+one+`,{"signal_id":"sig_2","connection_id":"con_1"}]}`)
	post("/v1/observations", "right",
		`[{"data":{"observation_id":"obs_1","connection_id":"con_1","entity":"product",`+
			`"external_id":"p","revision":4}}]`)
	c := fresh()
	c.EngineURL = server.URL
	if err := c.engine(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := c.state.Engine
	if len(got.Receipts) != 3 || len(got.Events) != 1 || len(got.Unauthorized) != 1 {
		t.Fatalf("%+v", got)
	}
	first, again := got.Receipts[0], got.Receipts[1]
	if first.Result != "created" || again.Result != "exists" || first.Digest != again.Digest ||
		first.Digest == got.Receipts[2].Digest {
		t.Errorf("%+v %+v", first, again)
	}
	if first.Visitor != "vis_x" || *first.CartLine != (CartLine{"con_1", "dec_1", "itm_1", "", 2, 3}) ||
		got.Receipts[2].CartLine != nil {
		t.Errorf("%+v %+v", first, first.CartLine)
	}
	if got.Events[0] != (Envelope{"obs_1", "con_1", "product", "p", 4}) ||
		got.Unauthorized[0].Credential == "" {
		t.Errorf("%+v", got)
	}
}

func TestElements(t *testing.T) {
	f := func(text string, want int, whole bool) {
		t.Helper()
		n := 0
		err := elements(strings.NewReader(text), func(json.RawMessage) error { n++; return nil })
		if n != want || (err == nil) != whole {
			t.Errorf("%s: %d, %v", text, n, err)
		}
	}
	f(`{"a":[]}`, 0, true)
	f(`{"a":[1,{"b":[2]},3]}`, 3, true)
	f(`{"a":[1,`, 1, false)
	f(``, 0, false)
}

func TestSamples(t *testing.T) {
	got, err := samples(strings.NewReader("# HELP x y\n# TYPE x gauge\nx 3\ny{kind=\"a b\",z=\"c\"} " +
		"1.5e+02\n\n"))
	if err != nil || len(got) != 2 || got["x"] != 3 || got[`y{kind="a b",z="c"}`] != 150 {
		t.Errorf("%v %v", got, err)
	}
	for _, text := range []string{"x", "x y"} {
		if _, err := samples(strings.NewReader(text)); err == nil {
			t.Errorf("%q was taken", text)
		}
	}
}

func TestRecord(t *testing.T) {
	c := fresh()
	c.addRecord(2, 7, []byte(`{"schema":1,"record_id":"r","connection_id":"con_1","signals":[`+
		`{"index":0,"signal_id":"sig_1","visitor":{"visitor_id":"vis_1"}},{"index":2,"signal_id":"sig_2"}]}`))
	c.addRecord(2, 8, []byte(`not ours`))
	want := []TopicSignal{{"con_1", "sig_1", "vis_1", "r", 2, 7}, {"con_1", "sig_2", "", "r", 2, 7}}
	if len(c.state.Topic) != 2 || c.state.Topic[0] != want[0] || c.state.Topic[1] != want[1] {
		t.Errorf("%+v", c.state.Topic)
	}
}

// TestDigests checks that digests of `raw` depend on its bytes, and those of provider documents on their
// content only.
func TestDigests(t *testing.T) {
	a, b := rawOf([]byte(`{"raw": {"x": 1}, "revision":2}`)), rawOf([]byte(`{"raw":{"x":1}}`))
	if string(a) != `{"x": 1}` || digest(a) == digest(b) || digest(rawOf([]byte(`{}`))) != "" {
		t.Errorf("%s %s", a, b)
	}
	read := func(text string) (v any) {
		if err := json.Unmarshal([]byte(text), &v); err != nil {
			t.Fatal(err)
		}
		return v
	}
	if canonicalDigest(read(`{"a":1,"b":[2]}`)) != canonicalDigest(read(`{ "b": [2], "a": 1.0 }`)) ||
		canonicalDigest(read(`{"a":1}`)) == canonicalDigest(read(`{"a":2}`)) {
		t.Error("documents do not compare by what they mean")
	}
}

// TestUnreachable checks that an unreachable source is an error and not an empty state.
func TestUnreachable(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	nowhere := "http://127.0.0.1:1"
	if s, err := Read(t.Context(), Targets{EngineURL: nowhere}); err == nil {
		t.Errorf("%+v", s)
	}
	if _, err := WaitIdle(ctx, Targets{DatabaseURL: "postgres://nouser@127.0.0.1:1/none"}); err == nil ||
		!strings.Contains(err.Error(), "not idle") {
		t.Error(err)
	}
}
