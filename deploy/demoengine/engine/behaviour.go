package engine

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
)

type call int

const (
	interactionsCall call = iota
	observationsCall
	recommendationsCall
)

// Behaviour is how one call is answered. The zero value is normal.
type Behaviour struct {
	// ConnectionID restricts the behaviour to requests that name this connection; "" restricts nothing.
	ConnectionID string `json:"connection_id"`
	// Status is answered instead of doing the call; with AfterEffect, after doing it.
	Status int `json:"status"`
	// HangMS delays the response, until the caller gives up at most.
	HangMS int `json:"hang_ms"`
	// AfterEffect does the call and closes the connection without a response, or answers Status.
	AfterEffect bool `json:"after_effect"`
	// RetryAfter is sent in whole seconds with Status.
	RetryAfter int `json:"retry_after"`
	// Times ends the behaviour after so many requests; 0 never ends it.
	Times int `json:"times"`
	// Answer replaces the response: "html" a page, "partial" half of the response, "redirect" to another
	// host.
	Answer string `json:"answer"`
	// Reject names the signals whose interactions get the result `rejected`.
	Reject []string `json:"reject"`
}

// Behaviours is the body of the debug route; calls that it omits are normal.
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
		writeJSON(w, http.StatusBadRequest,
			map[string]string{"code": "invalid_request", "detail": err.Error()})
		return
	}
	e.Behave(b)
	w.WriteHeader(http.StatusNoContent)
}

// takeBehaviour counts one request and returns how to treat it.
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

func (b Behaviour) writeError(w http.ResponseWriter) {
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

// writeFaulty writes a faulty response. A partial one is that of a call that was done.
func (b Behaviour) writeFaulty(w http.ResponseWriter, do func() any) {
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
		panic(http.ErrAbortHandler)               // closes the connection within the response
	}
}
