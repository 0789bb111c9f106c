// Package engine is a small engine that implements the calls of the contract, section 4: enough for the local stack and for
// tests. It owns what it received and what it read of it, in memory, and a behaviour that a person or a test may change. It
// checks the bearer token, the shape of a request and every digest, recommends what it read, and learns nothing from shoppers.
package engine

import (
	"crypto/subtle"
	"encoding/json"
	"net/http"
	"sync"
	"time"
)

const (
	maxBody         = 8 << 20
	maxInteractions = 200
)

// Engine answers the three calls and the debug routes.
type Engine struct {
	now   func() time.Time
	items []Item

	mu         sync.Mutex
	token      string
	source     *source // nil: there are no snapshots to read
	file       string  // empty: what was read is forgotten at the end
	memory     memory
	behaviours behaviours
}

// New makes an engine that expects a bearer token. Now may be nil.
func New(token string, now func() time.Time) *Engine {
	if now == nil {
		now = time.Now
	}
	return &Engine{token: token, now: now, items: demoItems(), memory: newMemory()}
}

// SetToken changes the expected token; requests with the old one are refused from now on.
func (e *Engine) SetToken(token string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.token = token
}

// Handler serves the engine's calls behind the token, and the debug routes in the open.
func (e *Engine) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("POST /v1/interactions", e.call(interactionsCall, e.takeInteractions))
	mux.Handle("POST /v1/observations", e.call(observationsCall, e.takeObservations))
	mux.Handle("POST /v1/recommendations", e.call(recommendationsCall, e.recommend))
	mux.HandleFunc("GET /debug/interactions", e.showInteractions)
	mux.HandleFunc("GET /debug/known", e.showKnown)
	mux.HandleFunc("GET /debug/observations", e.showObservations)
	mux.HandleFunc("GET /debug/snapshots", e.showSnapshots)
	mux.HandleFunc("GET /debug/refusals", e.showRefusals)
	mux.HandleFunc("POST /debug/behaviour", e.changeBehaviour)
	return mux
}

// work does what a call asks for and answers status and body.
type work func(body []byte, b Behaviour) (status int, answer any)

// call wraps a call's work in authentication and in the behaviour that is set for it.
func (e *Engine) call(name call, do work) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !e.authorised(r) {
			e.refused(r)
			w.Header().Set("WWW-Authenticate", "Bearer")
			writeJSON(w, http.StatusUnauthorized, problem{"unauthorized"})
			return
		}
		body, err := readAll(w, r)
		if err != nil {
			writeJSON(w, http.StatusRequestEntityTooLarge, problem{"payload_too_large"})
			return
		}
		b := e.takeBehaviour(name, body)
		status, answer := 0, any(nil)
		if b.AfterEffect {
			status, answer = do(body, b)
		}
		b.hang(r.Context())
		switch {
		case b.Answer != "":
			b.spoil(w, func() any {
				if status == 0 {
					_, answer = do(body, b)
				}
				return answer
			})
		case b.Status != 0:
			if b.Status == http.StatusUnauthorized {
				e.refused(r)
			}
			b.refuse(w)
		case b.AfterEffect:
			panic(http.ErrAbortHandler) // closes the connection without an answer
		default:
			if status == 0 {
				status, answer = do(body, b)
			}
			writeJSON(w, status, answer)
		}
	})
}

func (e *Engine) authorised(r *http.Request) bool {
	e.mu.Lock()
	want := "Bearer " + e.token
	e.mu.Unlock()
	return subtle.ConstantTimeCompare([]byte(r.Header.Get("Authorization")), []byte(want)) == 1
}

type problem struct {
	Code string `json:"code"`
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if v != nil {
		_ = json.NewEncoder(w).Encode(v) // the caller is gone when this fails
	}
}
