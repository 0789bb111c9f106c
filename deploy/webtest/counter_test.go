//go:build web

package webtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// counter stands before the edge and counts what it lets through.
type counter struct {
	*httptest.Server
	preflights, sent, header atomic.Int64 // OPTIONS of operation 1; signals in requests; requests by header

	mu    sync.Mutex
	times map[string]int       // that a signal was sent
	types map[string]string    // of signals
	seen  map[string][]string  // the answers to requests that carried a signal
	taken map[string]time.Time // when the edge took a signal
}

func newCounter(t testing.TB) *counter {
	edge, err := url.Parse(shared.edge.URL)
	check(t, err)
	c := &counter{times: map[string]int{}, types: map[string]string{}, seen: map[string][]string{},
		taken: map[string]time.Time{}}
	forward := httputil.NewSingleHostReverseProxy(edge)
	forward.ErrorHandler = func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) }
	forward.ModifyResponse = c.answered
	forward.ErrorLog = nil
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/storefront-signals") {
			c.count(r)
		}
		forward.ServeHTTP(w, r)
	}))
	t.Cleanup(c.Close)
	return c
}

type batchIDs struct {
	Signals []struct {
		SignalID string `json:"signal_id"`
		Type     string `json:"type"`
	} `json:"signals"`
}

type batchKey struct{}

func (c *counter) count(r *http.Request) {
	if r.Method == http.MethodOptions {
		c.preflights.Add(1)
		return
	}
	if r.Header.Get("Authorization") != "" {
		c.header.Add(1)
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler) // the request was cut
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	r.ContentLength = int64(len(body))
	var b batchIDs
	_ = json.Unmarshal(body, &b) // the edge says what is wrong with it
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range b.Signals {
		c.times[s.SignalID]++
		c.types[s.SignalID] = s.Type
		c.sent.Add(1)
	}
	r.Header.Set("X-Request-Id", fmt.Sprintf("web-%d", c.sent.Load()))
	*r = *r.WithContext(contextWith(r, b))
}

// resent is how many times a signal was sent although it had been sent before.
func (c *counter) resent() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for _, times := range c.times {
		n += times - 1
	}
	return n
}

// resentByType says of each type of signals how many were sent, and how many of them more than once.
func (c *counter) resentByType() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	all, again := map[string]int{}, map[string]int{}
	for id, times := range c.times {
		all[c.types[id]]++
		if times > 1 {
			again[c.types[id]]++
		}
	}
	var text []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		text = append(text, fmt.Sprintf("%s %d of %d", name, again[name], all[name]))
	}
	return strings.Join(text, ", ")
}

// answered writes down the answers to a signal, for the report of a loss.
func (c *counter) answered(res *http.Response) error {
	b, ok := res.Request.Context().Value(batchKey{}).(batchIDs)
	if !ok {
		return nil
	}
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return err
	}
	res.Body = io.NopCloser(bytes.NewReader(body))
	var results struct {
		Results []struct {
			Status string `json:"status"`
		} `json:"results"`
	}
	_ = json.Unmarshal(body, &results) // a problem has none
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, s := range b.Signals {
		said := fmt.Sprint(res.StatusCode)
		if i < len(results.Results) {
			said += " " + results.Results[i].Status
			if _, known := c.taken[s.SignalID]; !known {
				c.taken[s.SignalID] = time.Now()
			}
		}
		c.seen[s.SignalID] = append(c.seen[s.SignalID], said)
	}
	return nil
}

func (c *counter) story(id string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return fmt.Sprintf("sent %d times, answered %v", c.times[id], c.seen[id])
}
