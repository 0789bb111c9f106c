package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"storefront.internal/edge/internal/recommend"
	"storefront.internal/shared/settings"
)

// serve starts an engine with that handler, and returns a client of it.
func serve(t *testing.T, f http.HandlerFunc) *Client {
	t.Helper()
	s := httptest.NewServer(f)
	c := New(s.URL+"/", settings.Secret("token-of-the-edge"))
	t.Cleanup(func() {
		c.Close()
		s.Close()
	})
	return c
}

func answer(t *testing.T, status int, body string) (recommend.EngineResponse, error) {
	t.Helper()
	c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	})
	return c.Recommend(t.Context(), &recommend.EngineRequest{ConnectionID: "con_1"})
}

func TestRequest(t *testing.T) {
	t.Parallel()
	var got *http.Request
	var body []byte
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		got = r
		body, _ = io.ReadAll(r.Body)
		_, _ = io.WriteString(w, `{"items":[]}`)
	})
	q := &recommend.EngineRequest{ConnectionID: "con_1", StoreID: "str_1", DecisionID: "dec_1",
		Placement: "home", Limit: 3, Traceparent: "00-a-b-01"}
	if _, err := c.Recommend(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	if got.Method != "POST" || got.URL.Path != "/v1/recommendations" ||
		got.Header.Get("Authorization") != "Bearer token-of-the-edge" ||
		got.Header.Get("Content-Type") != "application/json" || got.Header.Get("traceparent") != "00-a-b-01" {
		t.Errorf("%s %s %v", got.Method, got.URL, got.Header)
	}
	want := `{"connection_id":"con_1","store_id":"str_1","decision_id":"dec_1","placement":"home","limit":3}`
	if string(body) != want {
		t.Errorf("body %s", body)
	}
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`{"items":[{"item_id":"itm_1","variant_id":"var_1","score":1},{"item_id":"itm_2"}],` +
			`"engine_ids":{"b":1,"a":"x"}}`: `[{itm_1 var_1} {itm_2 }] {"a":"x","b":1}`,
		`{"items":[{"item_id":"x"},{"item_id":"itm_1","variant_id":"x"},{}],` +
			`"engine_ids":null}`: `[{itm_1 }] `,
		`{"items":[],"engine_ids":"r1"}`:           `[] `,
		`{"items":[],"engine_ids":{"a":"\u0000"}}`: `[] `,
		`{"items":[],"engine_ids":{"a":1e400,` +
			`"big":12345678901234567890}}`: `[] {"a":1e400,"big":12345678901234567890}`,
		`{"items":[],"engine_ids":{"a":"` + strings.Repeat("x", maxEngineIDs) + `"}}`: `[] `,
	} {
		p, err := answer(t, 200, body)
		if got := fmt.Sprintf("%v %s", p.Items, p.EngineIDs); err != nil || got != want {
			t.Errorf("%.80s: %s, %v, want %s", body, got, err, want)
		}
	}
}

func TestRejectedReplies(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		status int
		body   string
	}{
		"no JSON": {200, "canary"}, "no items": {200, `{}`}, "items no array": {200, `{"items":{}}`},
		"another success": {204, ""}, "not allowed": {401, "canary"},
		"failing":   {500, `{"items":[]}`},
		"too large": {200, `{"items":[],"x":"` + strings.Repeat("x", maxReply) + `"}`},
	} {
		p, err := answer(t, tc.status, tc.body)
		if err == nil || len(p.Items) != 0 || strings.Contains(err.Error(), "canary") ||
			strings.Contains(err.Error(), "token") {
			t.Errorf("%s: %+v, %v", name, p, err)
		}
	}
}

func TestRedirectIsNotFollowed(t *testing.T) {
	t.Parallel()
	var calls atomic.Int32
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
	})
	if _, err := c.Recommend(t.Context(), &recommend.EngineRequest{}); err == nil || calls.Load() != 1 {
		t.Errorf("%v after %d calls", err, calls.Load())
	}
}

func TestDeadline(t *testing.T) {
	t.Parallel()
	c := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // only then the server notices that the client is gone
		<-r.Context().Done()
	})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := c.Recommend(ctx, &recommend.EngineRequest{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
}

func TestProxyOfTheEnvironmentIsIgnored(t *testing.T) {
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:1")
	c := New("http://engine.invalid", "x")
	defer c.Close()
	if c.http.Transport.(*http.Transport).Proxy != nil {
		t.Error("a proxy is used")
	}
}
