package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"time"
)

type call int

const (
	interactionsCall call = iota
	observationsCall
	recommendationsCall
)

// Behaviour is how one call answers. The zero value is normal.
type Behaviour struct {
	// ConnectionID keeps the behaviour to requests that name this connection; empty, it is everybody's.
	ConnectionID string `json:"connection_id"`
	// Status answers this instead of doing the work; with AfterEffect, after doing it.
	Status int `json:"status"`
	// HangMS waits so long before anything is answered, or until the caller gives up.
	HangMS int `json:"hang_ms"`
	// AfterEffect does the work and closes the connection without an answer, or answers Status.
	AfterEffect bool `json:"after_effect"`
	// RetryAfter is sent in whole seconds with Status.
	RetryAfter int `json:"retry_after"`
	// Times ends the behaviour after so many requests; 0 never ends it.
	Times int `json:"times"`
	// Answer is what comes instead of a sound answer: "html" a page, "partial" half of what was done, "redirect" to another host.
	Answer string `json:"answer"`
	// Reject names signals whose interactions are answered `rejected`.
	Reject []string `json:"reject"`
}

// Behaviours is the body of the debug route: what is left out is normal.
type Behaviours struct {
	Interactions    Behaviour `json:"interactions"`
	Observations    Behaviour `json:"observations"`
	Recommendations Behaviour `json:"recommendations"`
}

type behaviours [3]Behaviour

// Behave replaces how the engine answers.
func (e *Engine) Behave(b Behaviours) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.behaviours = behaviours{b.Interactions, b.Observations, b.Recommendations}
}

func (e *Engine) changeBehaviour(w http.ResponseWriter, r *http.Request) {
	var b Behaviours
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20))
	d.DisallowUnknownFields()
	err := d.Decode(&b)
	for _, one := range []Behaviour{b.Interactions, b.Observations, b.Recommendations} {
		if err == nil && !slices.Contains([]string{"", "html", "partial", "redirect"}, one.Answer) {
			err = fmt.Errorf("answer %q is not known", one.Answer)
		}
	}
	if err != nil {
		writeJSON(w, http.StatusBadRequest, map[string]string{"code": "invalid_request", "detail": err.Error()})
		return
	}
	e.Behave(b)
	w.WriteHeader(http.StatusNoContent)
}

// takeBehaviour answers how to treat one request and counts it.
func (e *Engine) takeBehaviour(name call, body []byte) Behaviour {
	e.mu.Lock()
	defer e.mu.Unlock()
	b := e.behaviours[name]
	if b.ConnectionID != "" && !bytes.Contains(body, []byte(strconv.Quote(b.ConnectionID))) {
		return Behaviour{}
	}
	if b.Times == 1 {
		e.behaviours[name] = Behaviour{}
	} else if b.Times > 1 {
		e.behaviours[name].Times--
	}
	return b
}

func (b Behaviour) hang(ctx context.Context) {
	if b.HangMS <= 0 {
		return
	}
	timer := time.NewTimer(time.Duration(b.HangMS) * time.Millisecond)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

func (b Behaviour) refuse(w http.ResponseWriter) {
	if b.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(b.RetryAfter))
	}
	writeJSON(w, b.Status, problem{"behaviour"})
}

func (b Behaviour) rejects(signalID string) bool {
	return slices.Contains(b.Reject, signalID)
}

func readAll(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	return io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
}

// spoil writes something that is no sound answer. A partial one is of work that was done.
func (b Behaviour) spoil(w http.ResponseWriter, do func() any) {
	switch b.Answer {
	case "html":
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, "<!doctype html><title>Hello</title>")
	case "redirect":
		w.Header().Set("Location", "http://elsewhere.invalid/")
		w.WriteHeader(http.StatusMovedPermanently)
	case "partial":
		text, err := json.Marshal(do())
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", strconv.Itoa(len(text)))
		_, _ = w.Write(text[:len(text)/2])
		_ = http.NewResponseController(w).Flush() // the caller is gone when this fails
		panic(http.ErrAbortHandler)               // closes the connection amid the answer
	}
}
