package fake

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// harness is the fakes behind a real listener, with a clock that a test moves.
type harness struct {
	t   *testing.T
	url string

	mu  sync.Mutex
	now time.Time
}

func newHarness(t *testing.T, edit ...func(*Config)) *harness {
	t.Helper()
	b := &harness{t: t, now: time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)}
	c := Config{Seed: 7, Products: 60, Orders: 6, AppSecret: "test-secret", Now: b.clock,
		Retries: []time.Duration{}}
	for _, e := range edit {
		e(&c)
	}
	s := New(c)
	server := httptest.NewServer(s.Handler())
	b.url = server.URL
	t.Cleanup(func() { server.Close(); s.Close() })
	return b
}

func (h *harness) clock() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.now
}

func (h *harness) pass(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now = h.now.Add(d)
}

type answer struct {
	status int
	header http.Header
	body   string
}

// into reads the answer's JSON.
func (a answer) into(t *testing.T, v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(a.body), v); err != nil {
		t.Fatalf("%d %.300s: %v", a.status, a.body, err)
	}
}

// call sends one request; headers are pairs, and one whose value is empty is not sent.
func (h *harness) call(method, path, body string, headers ...string) answer {
	h.t.Helper()
	if !strings.HasPrefix(path, "http") {
		path = h.url + path
	}
	r, err := http.NewRequest(method, path, strings.NewReader(body))
	if err != nil {
		h.t.Fatal(err)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	client := &http.Client{CheckRedirect: func(*http.Request,
		[]*http.Request) error {
		return http.ErrUseLastResponse
	}}
	res, err := client.Do(r)
	if err != nil {
		return answer{body: err.Error()}
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		h.t.Fatal(err)
	}
	return answer{res.StatusCode, res.Header, strings.TrimSpace(string(text))}
}

// must sends a request whose answer has to be of one status.
func (h *harness) must(status int, method, path, body string, headers ...string) answer {
	h.t.Helper()
	a := h.call(method, path, body, headers...)
	if a.status != status {
		h.t.Fatalf("%s %s: %d %.300s, want %d", method, path, a.status, a.body, status)
	}
	return a
}

// delivery is what a receiver was sent.
type delivery struct {
	path   string
	header http.Header
	body   string
}

// inbox receives deliveries and answers the statuses in turn, 200 when none is left.
type inbox struct {
	url string

	arrived chan struct{} // one for each delivery

	mu       sync.Mutex
	got      []delivery
	statuses []int
}

func newInbox(t *testing.T, statuses ...int) *inbox {
	t.Helper()
	in := &inbox{statuses: statuses, arrived: make(chan struct{}, 1000)}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		in.mu.Lock()
		defer in.mu.Unlock()
		in.got = append(in.got, delivery{r.URL.Path, r.Header.Clone(), string(body)})
		status := http.StatusOK
		if len(in.statuses) > 0 {
			status, in.statuses = in.statuses[0], in.statuses[1:]
		}
		w.WriteHeader(status)
		in.arrived <- struct{}{}
	}))
	t.Cleanup(server.Close)
	in.url = server.URL
	return in
}

// wait answers the deliveries when there are so many.
func (in *inbox) wait(n int) []delivery {
	for range n {
		<-in.arrived
	}
	return in.all()
}

func (in *inbox) all() []delivery {
	in.mu.Lock()
	defer in.mu.Unlock()
	return append([]delivery{}, in.got...)
}
