// Package behaviour injects faults into a provider's API. It owns the body of the debug request and the
// wrapper around an API; what an error looks like is each provider's own.
package behaviour

import (
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"storefront.internal/shared/backoff"
)

// Behaviour is how API calls are answered. The zero value is normal.
type Behaviour struct {
	// Status is answered instead of the call.
	Status int `json:"status"`
	// HangMS waits so long before anything is answered, or until the caller gives up.
	HangMS int `json:"hang_ms"`
	// RetryAfter is sent in whole seconds with Status.
	RetryAfter int `json:"retry_after"`
	// Times ends the behaviour after so many calls; 0 never ends it.
	Times int `json:"times"`
	// Every keeps it to each n-th call; 0 and 1 are all.
	Every int `json:"every"`
	// Answer replaces the answer: "html" a page, "huge" 20 MB, "redirect" to another host, "drop" a closed
	// connection; with Status, or with one that fits.
	Answer string `json:"answer"`
}

// Valid reports whether a behaviour is possible.
func (b Behaviour) Valid() bool {
	switch b.Answer {
	case "", "html", "huge", "redirect", "drop":
	default:
		return false
	}
	return (b.Status == 0 || b.Status >= 200 && b.Status <= 599) &&
		min(b.HangMS, b.RetryAfter, b.Times, b.Every) >= 0
}

// Switch holds the behaviour of an API. The zero value is normal.
type Switch struct {
	mu    sync.Mutex
	b     Behaviour
	calls int
}

// Set replaces the behaviour.
func (s *Switch) Set(b Behaviour) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.b, s.calls = b, 0
}

// take counts one call and returns how to treat it.
func (s *Switch) take() Behaviour {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.b
	if s.calls++; b.Every > 1 && s.calls%b.Every != 0 {
		return Behaviour{}
	}
	if b.Times == 1 {
		s.b = Behaviour{}
	} else if b.Times > 1 {
		s.b.Times--
	}
	return b
}

// Wrap applies the behaviour to an API; refuse writes the provider's error of a status.
func (s *Switch) Wrap(next http.Handler, refuse func(w http.ResponseWriter, status int)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b := s.take()
		if b.HangMS > 0 {
			_ = backoff.Sleep(r.Context(), time.Duration(b.HangMS)*time.Millisecond)
		}
		if b.Status == 0 && b.Answer == "" {
			next.ServeHTTP(w, r)
			return
		}
		if b.RetryAfter > 0 {
			w.Header().Set("Retry-After", strconv.Itoa(b.RetryAfter))
		}
		if b.Answer == "" {
			refuse(w, b.Status)
			return
		}
		b.answer(w)
	})
}

const huge = 20 << 20

func (b Behaviour) answer(w http.ResponseWriter) {
	status := func(usual int) int {
		if b.Status != 0 {
			return b.Status
		}
		return usual
	}
	switch b.Answer {
	case "html":
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.WriteHeader(status(http.StatusOK))
		_, _ = w.Write([]byte("<!doctype html><title>Maintenance</title><p>We are back soon."))
	case "redirect":
		w.Header().Set("Location", "http://elsewhere.invalid/")
		w.WriteHeader(status(http.StatusFound))
	case "huge":
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status(http.StatusOK))
		writeHuge(w)
	case "drop":
		panic(http.ErrAbortHandler) // closes the connection without an answer
	}
}

// writeHuge writes well-formed JSON, so that only its size is wrong.
func writeHuge(w http.ResponseWriter) {
	chunk := []byte(`"` + strings.Repeat("x", 1<<16) + `",`)
	_, _ = w.Write([]byte("["))
	for sent := 0; sent < huge; sent += len(chunk) {
		if _, err := w.Write(chunk); err != nil {
			return // the caller closed the connection
		}
	}
	_, _ = w.Write([]byte(`""]`))
}
