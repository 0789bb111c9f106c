package outbound

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"runtime/debug"
	"strconv"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

// TestBudget reads a response while another one holds the budget: it waits with the call's context and holds
// nothing meanwhile.
func TestBudget(t *testing.T) {
	t.Parallel()
	const size = 3 * firstBlock
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		n, _ := strconv.Atoi(r.URL.Query().Get("n"))
		w.Header().Set("Content-Length", strconv.Itoa(n))
		_, _ = w.Write(make([]byte, n))
	})
	m := NewMetrics(prometheus.NewRegistry())
	c := client(t, Config{AllowedNetworks: local(), Budget: size, Metrics: m, Timeout: time.Minute})
	do := func(ctx context.Context, n int) (*Response, error) {
		return c.Do(ctx, Request{Method: http.MethodGet, URL: url + "?n=" + strconv.Itoa(n)})
	}
	first, err := do(t.Context(), 2*firstBlock)
	if err != nil || len(first.Body) != 2*firstBlock {
		t.Fatal(err)
	}
	if got := testutil.ToFloat64(m.reserved); got < 2*firstBlock || got > 2*firstBlock+1 {
		t.Errorf("%v bytes are reserved", got)
	}
	type result struct {
		response *Response
		err      error
	}
	results := make(chan result)
	waiting := func(ctx context.Context, n float64) {
		go func() {
			response, err := do(ctx, 2*firstBlock)
			results <- result{response, err}
		}()
		for testutil.ToFloat64(m.waits) < n {
			time.Sleep(time.Millisecond)
		}
	}
	cancelled, cancel := context.WithCancel(t.Context())
	waiting(cancelled, 1)
	cancel()
	if got := <-results; reason(got.err) != Cancelled {
		t.Errorf("cancelled while it waited: %v", got.err)
	}
	waiting(t.Context(), 2)
	first.Release()
	first.Release()
	got := <-results
	if got.err != nil || len(got.response.Body) != 2*firstBlock {
		t.Fatalf("after the first one was released: %v", got.err)
	}
	got.response.Release()
	if got := testutil.ToFloat64(m.reserved); got != 0 {
		t.Errorf("%v bytes stay reserved", got)
	}
}

// TestBudgetIsGivenBack fails calls in all ways while their bodies are read.
func TestBudgetIsGivenBack(t *testing.T) {
	t.Parallel()
	m := NewMetrics(prometheus.NewRegistry())
	c := client(t, Config{AllowedNetworks: local(), Metrics: m, Timeout: time.Minute})
	for name, h := range map[string]http.HandlerFunc{
		"too large": func(w http.ResponseWriter, _ *http.Request) {
			for range 3 {
				_, _ = w.Write(make([]byte, firstBlock))
			}
		},
		"truncated": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			fmt.Fprint(w, "x")
		},
		"coding": func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Encoding", "br") },
		"another range": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Range", "bytes 7-8/9")
			w.WriteHeader(http.StatusPartialContent)
		},
	} {
		request := Request{Method: http.MethodGet, URL: serve(t, h), MaxBody: 2 * firstBlock}
		if name == "another range" {
			request.Range = &ByteRange{Length: 10}
		}
		if _, err := c.Do(t.Context(), request); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if got := testutil.ToFloat64(m.reserved); got != 0 {
		t.Errorf("%v bytes stay reserved", got)
	}
}

func TestMaxBodyOfARequest(t *testing.T) {
	t.Parallel()
	url := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, 1000)) })
	for maxBody, want := range map[int64]Reason{999: TooLarge, 1000: "", 5000: "", 0: ""} {
		_, err := client(t, Config{AllowedNetworks: local(), MaxBody: 1000}).Do(t.Context(),
			Request{Method: http.MethodGet, URL: url, MaxBody: maxBody})
		if reason(err) != want {
			t.Errorf("at most %d: %v", maxBody, err)
		}
	}
	if _, err := client(t, Config{AllowedNetworks: local(), MaxBody: 999}).Do(t.Context(),
		Request{Method: http.MethodGet, URL: url, MaxBody: 5000}); reason(err) != TooLarge {
		t.Errorf("over the client's: %v", err)
	}
}

// TestDefaultBudget is not parallel: it changes the memory limit of the process.
func TestDefaultBudget(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	t.Cleanup(func() { debug.SetMemoryLimit(before) })
	for limit, want := range map[int64]int64{math.MaxInt64: MinBudget, 1 << 29: MinBudget,
		10 << 30: 1 << 30} {
		debug.SetMemoryLimit(limit)
		if got := DefaultBudget(); got != want {
			t.Errorf("limit %d: %d, want %d", limit, got, want)
		}
	}
}
