// Package behaviour is how a provider's API misbehaves when it is told to. It owns the debug body and the wrapper around an API; what
// an error looks like is each provider's own.
package behaviour

import (
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Behaviour is how API calls are answered. The zero value is normal.
type Behaviour struct {
	// Status is answered instead of doing the work.
	Status int `json:"status"`
	// HangMS waits so long before anything is answered, or until the caller gives up.
	HangMS int `json:"hang_ms"`
	// RetryAfter is sent in whole seconds with Status.
	RetryAfter int `json:"retry_after"`
	// Times ends the behaviour after so many calls; 0 never ends it.
	Times int `json:"times"`
	// Every keeps it to each n-th call; 0 and 1 are all.
	Every int `json:"every"`
	// Answer is what comes instead of the work: "html" a page, "huge" 20 MB, "redirect" to another host, "drop" a closed connection;
	// with Status, or with one that fits.
	Answer string `json:"answer"`
}

// Valid says whether a behaviour can be followed.
func (b Behaviour) Valid() bool {
	switch b.Answer {
	case "", "html", "huge", "redirect", "drop":
	default:
		return false
	}
	return (b.Status == 0 || b.Status >= 200 && b.Status <= 599) && b.HangMS >= 0 && b.RetryAfter >= 0 && b.Times >= 0 && b.Every >= 0
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

// take answers how to treat one call and counts it.
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

// Wrap lets an API misbehave; refuse writes the provider's error of a status.
func (s *Switch) Wrap(next http.Handler, refuse func(w http.ResponseWriter, status int)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b := s.take()
		b.hang(r)
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

func (b Behaviour) hang(r *http.Request) {
	if b.HangMS <= 0 {
		return
	}
	timer := time.NewTimer(time.Duration(b.HangMS) * time.Millisecond)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-r.Context().Done():
	}
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
			return // the caller had enough
		}
	}
	_, _ = w.Write([]byte(`""]`))
}
