//go:build web

package webtest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// scripted is an edge whose answers to operation 1 a test writes.
type scripted struct {
	*httptest.Server
	answer func(n int, r arrival, w http.ResponseWriter)

	mu       sync.Mutex
	arrivals []arrival
}

// arrival is one request of operation 1.
type arrival struct {
	at     time.Time
	method string
	header string // Authorization
	ids    []string
}

// newScripted answers request n, from 0 on, by a function; nil and what is left accepts.
func newScripted(t testing.TB, answer func(n int, r arrival, w http.ResponseWriter)) *scripted {
	s := &scripted{answer: answer}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

func (s *scripted) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Access-Control-Allow-Origin", "*")
	h.Set("Access-Control-Allow-Headers", "Authorization, Content-Type")
	h.Set("Access-Control-Expose-Headers", "Retry-After")
	h.Set("Cache-Control", "no-store")
	body, err := io.ReadAll(r.Body)
	if err != nil || !strings.HasSuffix(r.URL.Path, "/storefront-signals") {
		return
	}
	var b batchIDs
	_ = json.Unmarshal(body, &b) // a preflight has none
	one := arrival{at: time.Now(), method: r.Method, header: r.Header.Get("Authorization")}
	for _, x := range b.Signals {
		one.ids = append(one.ids, x.SignalID)
	}
	s.mu.Lock()
	n := 0
	for _, x := range s.arrivals {
		if x.method != http.MethodOptions {
			n++
		}
	}
	s.arrivals = append(s.arrivals, one)
	s.mu.Unlock()
	if r.Method != http.MethodOptions {
		s.answer(n, one, w)
	}
}

// all are the requests without preflights.
func (s *scripted) all() (all []arrival) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, x := range s.arrivals {
		if x.method != http.MethodOptions {
			all = append(all, x)
		}
	}
	return all
}

// preflights is the number of OPTIONS requests.
func (s *scripted) preflights() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, x := range s.arrivals {
		if x.method == http.MethodOptions {
			n++
		}
	}
	return n
}

func accept(w http.ResponseWriter, ids []string) {
	w.WriteHeader(http.StatusAccepted)
	_, _ = io.WriteString(w, results(ids))
}

func results(ids []string) string {
	all := make([]string, len(ids))
	for i, id := range ids {
		all[i] = fmt.Sprintf(`{"index":%d,"signal_id":%q,"status":"accepted"}`, i, id)
	}
	return `{"results":[` + strings.Join(all, ",") + `]}`
}

func refuse(w http.ResponseWriter, status int, more string) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	fmt.Fprintf(w, `{"status":%d%s,"detail":%q}`, status, more, strings.Repeat("x", 2000))
}

// decisionJSON is a Decision that no service served.
const decisionJSON = `{decision_id: 'dec_scripted', placement: 'home', served_at: new Date().toISOString(),
	source: 'engine', items: [0, 1, 2].map((n) => ({position: n, item_id: 'itm_' + n}))}`

// Each row of the table of answers, in a real Chromium.
func TestAnswers(t *testing.T) {
	t.Parallel()
	b, h := chromium(t), newHarness(t)
	f := func(name string, signals int, first func(arrival, http.ResponseWriter),
		after func(*testing.T, *visitor, *scripted)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScripted(t, func(n int, r arrival, w http.ResponseWriter) {
				if n == 0 {
					first(r, w)
					return
				}
				accept(w, r.ids)
			})
			v := visit(t, b, h.shopper(strings.ReplaceAll(name, " ", "-"), s.URL, shared.shop, nil))
			v.eval("acts.adopt(" + decisionJSON + ")")
			v.eval(fmt.Sprintf("[...Array(%d).keys()].map(acts.dismiss).length", signals))
			after(t, v, s)
		})
	}
	// An answer that does not name every signal in its place ends none of them.
	kept := func(t *testing.T, v *visitor, s *scripted) {
		t.Helper()
		v.await(`sf.stats().requests > 0 && sf.stats().inFlight === 0`)
		v.await(`sf.flush().then((x) => x.accepted === 2 && signals() === 0)`)
		all := s.all()
		if len(all) != 2 || strings.Join(all[0].ids, " ") != strings.Join(all[1].ids, " ") {
			t.Errorf("requests %+v, want the same two signals twice", all)
		}
	}
	body := func(make func(ids []string) string) func(arrival, http.ResponseWriter) {
		return func(r arrival, w http.ResponseWriter) {
			w.WriteHeader(http.StatusAccepted)
			_, _ = io.WriteString(w, make(r.ids))
		}
	}
	f("too short", 2, body(func(ids []string) string { return results(ids[:1]) }), kept)
	f("too long", 2, body(func(ids []string) string { return results(append(ids, ids[0])) }), kept)
	f("wrong order", 2, body(func(ids []string) string { return results([]string{ids[1], ids[0]}) }), kept)
	f("a page", 2, body(func([]string) string { return "<!doctype html><title>Log in</title>" }), kept)
	f("cut", 2, func(r arrival, w http.ResponseWriter) {
		w.Header().Set("Content-Length", "5000")
		w.WriteHeader(http.StatusAccepted)
		_, _ = io.WriteString(w, results(r.ids)[:20])
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}, kept)
	f("200", 2, func(r arrival, w http.ResponseWriter) { _, _ = io.WriteString(w, results(r.ids)) }, kept)
	for _, status := range []int{408, 500, 502, 503, 429} {
		f(fmt.Sprint(status), 2, func(_ arrival, w http.ResponseWriter) { refuse(w, status, "") }, kept)
	}
	f("400 of one", 1, func(_ arrival, w http.ResponseWriter) { refuse(w, 400, "") },
		func(t *testing.T, v *visitor, _ *scripted) {
			v.await(`results.length === 1`)
			if got := v.eval(`results[0].status + signals()`); got != "malformed0" {
				t.Errorf("result %s", got)
			}
		})
	f("400 of many", 4, func(_ arrival, w http.ResponseWriter) { refuse(w, 400, "") }, halved)
	f("413", 4, func(_ arrival, w http.ResponseWriter) { refuse(w, 413, "") }, halved)
	f("422", 4, func(_ arrival, w http.ResponseWriter) { refuse(w, 422, `,"max_signals_per_batch":2`) }, halved)
	f("401", 2, func(_ arrival, w http.ResponseWriter) { refuse(w, 401, "") },
		func(t *testing.T, v *visitor, s *scripted) {
			v.await(`sf.flush().then((x) => x.accepted === 2)`)
			if all := s.all(); len(all) != 2 || all[0].header != "" || all[1].header == "" {
				t.Errorf("requests %+v, want the other form once", all)
			}
		})
	for _, status := range []int{403, 404, 405, 410} {
		f(fmt.Sprint(status), 2, func(_ arrival, w http.ResponseWriter) { refuse(w, status, "") }, stopped)
	}
}

// halved: the rest comes in smaller batches.
func halved(t *testing.T, v *visitor, s *scripted) {
	t.Helper()
	v.await(`sf.flush().then((x) => x.accepted === 4 && signals() === 0)`)
	if all := s.all(); len(all) < 3 || len(all[0].ids) != 4 || len(all[1].ids) > 2 {
		t.Errorf("requests %+v", all)
	}
}

// stopped: no more requests of this page, and one more try of the next.
func stopped(t *testing.T, v *visitor, s *scripted) {
	t.Helper()
	v.await(`sf.stats().stopped > 0`)
	v.eval(`acts.dismiss(0).length`)
	v.eval(`new Promise((f) => setTimeout(f, 1500))`)
	if n := len(s.all()); n != 1 {
		t.Errorf("%d requests, want 1", n)
	}
	v.to(v.eval(`location.href`))
	v.await(`signals() === 0`)
}

// After a Retry-After no tab sends before its end.
func TestNoTabSendsBeforeRetryAfter(t *testing.T) {
	t.Parallel()
	const after = 4 * time.Second
	for _, status := range []int{429, 503} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			t.Parallel()
			s := newScripted(t, func(n int, r arrival, w http.ResponseWriter) {
				if n == 0 {
					w.Header().Set("Retry-After", fmt.Sprint(int(after.Seconds())))
					refuse(w, status, "")
					return
				}
				accept(w, r.ids)
			})
			h := newHarness(t)
			first := visit(t, chromium(t), h.shopper("retry", s.URL, shared.shop, nil))
			second := visitIn(t, first.profile, h.URL+"/?s=retry")
			first.eval("acts.adopt(" + decisionJSON + ")")
			second.eval("acts.adopt(" + decisionJSON + ")")
			first.eval("acts.click(0).length")
			first.await(`sf.stats().pausedMs > 0`)
			for _, v := range []*visitor{first, second} {
				v.eval("acts.click(1).length + acts.buy('1', 0).length")
				v.eval("sf.flush().then(() => 0)")
			}
			third := visitIn(t, first.profile, h.URL+"/?s=retry")
			third.await(`signals() === 0`)
			all := s.all()
			for _, one := range all[1:] {
				if waited := one.at.Sub(all[0].at); waited < after {
					t.Errorf("a request came after %s", waited)
				}
			}
		})
	}
}

// The bytes of a request that may outlive the page are given back only when its answer was read: after forty
// answers with `no-store` there is still room.
func TestFortyRefusalsLeaveRoomForKeepalive(t *testing.T) {
	t.Parallel()
	s := newScripted(t, func(n int, r arrival, w http.ResponseWriter) {
		if n < 40 {
			refuse(w, 503, "")
			return
		}
		accept(w, r.ids)
	})
	v := visit(t, chromium(t), newHarness(t).shopper("keepalive", s.URL, shared.shop, nil))
	v.eval("acts.adopt(" + decisionJSON + ")")
	v.eval("[...Array(45).keys()].map(acts.dismiss).length")
	for len(s.all()) < 41 {
		v.eval("sf.flush().then(() => 0)")
	}
	v.await("signals() === 0")
	got := v.eval(fmt.Sprintf("fetch('%s/room', {method: 'POST', keepalive: true, body: 'x'.repeat(60000)})"+
		".then((r) => r.status, (e) => String(e))", s.URL))
	if got != "200" {
		t.Errorf("60,000 bytes with keepalive after %d refusals: %s", 40, got)
	}
}
