package providertest

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// FaultProxy serves a provider's server and injects faults.
type FaultProxy struct {
	URL string

	mu    sync.Mutex
	fault Fault
	left  int
	calls int
	ended chan struct{}
}

// NewFaultProxy serves the handler until the test ends.
func NewFaultProxy(t *testing.T, provider http.Handler) *FaultProxy {
	t.Helper()
	f := &FaultProxy{ended: make(chan struct{})}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if fault, ok := f.next(); ok {
			f.make(w, r, fault)
			return
		}
		provider.ServeHTTP(w, r)
	}))
	f.URL = server.URL
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(f.ended) })
	return f
}

// SetFault replaces the injected fault.
func (f *FaultProxy) SetFault(t Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fault, f.left = t, t.Times
}

// Calls returns the number of requests.
func (f *FaultProxy) Calls() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls
}

func (f *FaultProxy) next() (Fault, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls++
	t := f.fault
	if t.Status == 0 && t.Redirect == "" && !t.Hang && !t.Truncate && t.Huge == 0 && !t.Bomb {
		return t, false
	}
	if t.Times > 0 {
		if f.left--; f.left < 0 {
			return t, false
		}
	}
	return t, true
}

func (f *FaultProxy) make(w http.ResponseWriter, r *http.Request, t Fault) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	for name, value := range t.Header {
		w.Header().Set(name, value)
	}
	switch {
	case t.Hang:
		select {
		case <-r.Context().Done():
		case <-f.ended:
		}
	case t.Redirect != "":
		w.Header().Set("Location", t.Redirect)
		w.WriteHeader(http.StatusFound)
	case t.Truncate:
		w.Header().Set("Content-Length", "1000")
		_, _ = io.WriteString(w, `{"id": 1, "name"`)
	case t.Huge > 0:
		_, _ = io.WriteString(w, `{"id":"`)
		chunk := strings.Repeat("x", 64<<10)
		for n := int64(0); n < t.Huge; n += int64(len(chunk)) {
			if _, err := io.WriteString(w, chunk); err != nil {
				return
			}
		}
		_, _ = io.WriteString(w, `"}`)
	case t.Bomb:
		w.Header().Set("Content-Encoding", "gzip")
		z, err := gzip.NewWriterLevel(w, gzip.BestSpeed)
		if err != nil {
			return
		}
		zeros := make([]byte, 1<<20)
		for range 4 {
			if _, err := z.Write(zeros); err != nil {
				return
			}
		}
		_ = z.Close()
	default:
		w.WriteHeader(t.Status)
		_, _ = io.WriteString(w, t.Body)
	}
}
