package connector

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// storefront answers deliver_observations as the script says, one entry for each attempt, and then with
// `accepted`.
type storefront struct {
	script []func(w http.ResponseWriter, n int) (done bool)

	mu     sync.Mutex
	bodies []string
}

func (s *storefront) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	text, _ := io.ReadAll(r.Body)
	var body struct {
		Observations []json.RawMessage `json:"observations"`
	}
	_ = json.Unmarshal(text, &body)
	s.mu.Lock()
	s.bodies = append(s.bodies, string(text))
	attempt := len(s.bodies)
	s.mu.Unlock()
	if attempt <= len(s.script) && s.script[attempt-1](w, len(body.Observations)) {
		return
	}
	results := make([]Result, len(body.Observations))
	for i := range results {
		results[i] = Result{Index: i, Status: Accepted}
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"results": results})
}

func status(code int, headers ...string) func(http.ResponseWriter, int) bool {
	return func(w http.ResponseWriter, _ int) bool {
		for i := 0; i+1 < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(code)
		fmt.Fprint(w, `{"code":"some_code","detail":"some detail"}`)
		return true
	}
}

func tooManyFor(most int) func(http.ResponseWriter, int) bool {
	return func(w http.ResponseWriter, n int) bool { return n > most && status(413)(w, n) }
}

func dropped(http.ResponseWriter, int) bool { panic(http.ErrAbortHandler) }

func answering(text string) func(http.ResponseWriter, int) bool {
	return func(w http.ResponseWriter, _ int) bool { fmt.Fprint(w, text); return true }
}

func TestDeliver(t *testing.T) {
	t.Parallel()
	f := func(name string, n, batch int, attempts string, fails string,
		script ...func(http.ResponseWriter, int) bool) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &storefront{script: script}
			server := httptest.NewServer(s)
			t.Cleanup(server.Close)
			c := New(Config{BaseURL: server.URL, ConnectionID: "con_1", Token: "t", Batch: batch, Attempts: 3,
				Backoff: time.Microsecond})
			all := make([]Observation, n)
			for i := range all {
				all[i] = Observation{Entity: Category, ExternalID: fmt.Sprint("c", i), Revision: 1}
			}
			results, err := c.Deliver(context.Background(), all)
			if fails == "" && (err != nil || len(results) != n) {
				t.Errorf("%d results, error %v", len(results), err)
			}
			if fails != "" && (err == nil || !strings.Contains(err.Error(), fails)) {
				t.Errorf("error %v, want %q", err, fails)
			}
			for i, r := range results {
				if r.Index != i {
					t.Errorf("result %d has index %d", i, r.Index)
				}
			}
			got := ""
			for _, body := range s.bodies {
				got += fmt.Sprint(strings.Count(body, "external_id"), " ")
			}
			if got != attempts {
				t.Errorf("requests with %q observations, want %q", got, attempts)
			}
		})
	}
	f("batches", 5, 2, "2 2 1 ", "")
	f("nothing", 0, 2, "", "")
	f("unavailable", 2, 2, "2 2 2 ", "", status(503, "Retry-After", "0"), status(500))
	f("attempts used up", 2, 1, "1 1 1 ", "given up after 3 attempts", status(503), status(503), status(503))
	f("connection lost", 2, 2, "2 2 ", "", dropped)
	f("too large", 5, 4, "4 2 2 1 ", "", tooManyFor(2), tooManyFor(2), tooManyFor(2), tooManyFor(2))
	f("one is too large", 1, 4, "1 ", "too large", tooManyFor(0))
	f("wrong token", 2, 2, "2 ", "401", status(401))
	f("unreadable", 2, 2, "2 2 ", "", answering(`{"results":[`))
	f("a result is missing", 2, 2, "2 ", "1 results for 2", answering(`{"results":[{"index":0}]}`))
	f("results in disorder", 2, 2, "2 ", "position 1", answering(`{"results":[{"index":1},{"index":0}]}`))
}

func TestEveryAttemptSendsTheSameBytes(t *testing.T) {
	t.Parallel()
	s := &storefront{script: []func(http.ResponseWriter, int) bool{dropped, status(503)}}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	c := New(Config{BaseURL: server.URL, Backoff: time.Microsecond})
	document := map[string]any{"name": map[string]string{"es": "Té & <café>"}}
	if _, err := c.Deliver(context.Background(),
		[]Observation{{Entity: Category, ExternalID: "c", Revision: 1, Document: document}}); err != nil {
		t.Fatal(err)
	}
	if s.bodies[0] != s.bodies[1] || s.bodies[1] != s.bodies[2] ||
		!strings.Contains(s.bodies[0], "Té & <café>") {
		t.Errorf("bodies %q", s.bodies)
	}
}

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	if d := retryAfter("3"); d != 3*time.Second {
		t.Errorf("seconds: %s", d)
	}
	if d := retryAfter(time.Now().Add(time.Hour).UTC().Format(http.TimeFormat)); d < 50*time.Minute {
		t.Errorf("date: %s", d)
	}
	for _, text := range []string{"", "soon", "-1", "Mon, 02 Jan 2006 15:04:05 GMT"} {
		if d := retryAfter(text); d != 0 {
			t.Errorf("%q: %s", text, d)
		}
	}
}

func TestWaitingEndsWithTheContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(context.Background())
	s := &storefront{script: []func(http.ResponseWriter, int) bool{func(w http.ResponseWriter, n int) bool {
		cancel()
		return status(503, "Retry-After", "3600")(w, n)
	}}}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	if _, err := New(Config{BaseURL: server.URL}).Deliver(ctx, make([]Observation, 1)); err == nil {
		t.Error("no error")
	}
}

func TestBook(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "book.json")
	revise := func(names ...string) (revisions string) {
		t.Helper()
		b, err := OpenRevisions(path)
		if err != nil {
			t.Fatal(err)
		}
		all := make([]Observation, len(names))
		for i, name := range names {
			all[i] = Observation{Entity: Category, ExternalID: fmt.Sprint(i),
				Document: map[string]string{"name": name}}
			if name == "" {
				all[i].Operation, all[i].Document = Delete, nil
			}
		}
		if err := b.Assign(all); err != nil {
			t.Fatal(err)
		}
		if err := b.Save(); err != nil {
			t.Fatal(err)
		}
		for _, o := range all {
			revisions += fmt.Sprint(o.Revision, " ")
		}
		return revisions
	}
	for i, step := range []struct{ got, want string }{
		{revise("a", "b"), "1 1 "},
		{revise("a", "b"), "1 1 "},
		{revise("a", "c", "d"), "1 2 1 "},
		{revise("a", "b"), "1 3 "},
		{revise("", "b"), "2 3 "},
		{revise("a", "b"), "3 3 "},
	} {
		if step.got != step.want {
			t.Errorf("step %d: revisions %q, want %q", i, step.got, step.want)
		}
	}
}
