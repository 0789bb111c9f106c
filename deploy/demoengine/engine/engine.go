// Package engine is a small recommendation engine for the local stack and for tests. It owns what it received
// and the catalog that it read, in memory, and faults that a person or a test may inject (Behaviour). It
// checks the bearer token, the shape of a request and every digest, recommends what it read, and learns
// nothing from shoppers.
package engine

import (
	"crypto/subtle"
	"encoding/json"
	"net/http"
	"sync"
	"time"

	"storefront.internal/shared/backoff"
)

const (
	maxBody         = 8 << 20
	maxInteractions = 200
)

// Engine serves the three calls and the debug routes.
type Engine struct {
	now   func() time.Time
	items []Item

	mu         sync.Mutex
	token      string
	source     *source // nil: no snapshots are read
	file       string  // "": the catalog is not saved
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

// SetToken changes the expected token; from now on the old one is refused.
func (e *Engine) SetToken(token string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.token = token
}

// Handler serves the calls, which need the token, and the debug routes, which do not.
func (e *Engine) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("POST /v1/interactions", e.call(interactionsCall, e.recordInteractions))
	mux.Handle("POST /v1/observations", e.call(observationsCall, e.deliverObservations))
	mux.Handle("POST /v1/recommendations", e.call(recommendationsCall, e.recommend))
	mux.HandleFunc("GET /debug/interactions", show("interactions", e.Receipts))
	mux.HandleFunc("GET /debug/known", e.showKnown)
	mux.HandleFunc("GET /debug/observations", show("observations", e.Observations))
	mux.HandleFunc("GET /debug/snapshots", show("snapshots", e.Readings))
	mux.HandleFunc("GET /debug/refusals", show("refusals", e.Refusals))
	mux.HandleFunc("POST /debug/behaviour", e.changeBehaviour)
	return mux
}

// work does a call and returns status and body of the response.
type work func(body []byte, b Behaviour) (status int, answer any)

// call adds authentication and the injected behaviour to a call.
func (e *Engine) call(name call, do work) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !e.authorised(r) {
			e.recordRefusal(r)
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
		if b.HangMS > 0 {
			_ = backoff.Sleep(r.Context(), time.Duration(b.HangMS)*time.Millisecond)
		}
		switch {
		case b.Answer != "":
			b.writeFaulty(w, func() any {
				if status == 0 {
					_, answer = do(body, b)
				}
				return answer
			})
		case b.Status != 0:
			if b.Status == http.StatusUnauthorized {
				e.recordRefusal(r)
			}
			b.writeError(w)
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
