package engine

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"time"
)

// Refusal is a request that was answered 401: its path, when it came, and a digest of its credential.
type Refusal struct {
	Call       string    `json:"call"`
	ReceivedAt time.Time `json:"received_at"`
	Credential string    `json:"credential"`
}

// recordRefusal records a request that is answered 401.
func (e *Engine) recordRefusal(r *http.Request) {
	sum := sha256.Sum256([]byte(r.Header.Get("Authorization")))
	e.mu.Lock()
	defer e.mu.Unlock()
	e.memory.refusals = append(e.memory.refusals, Refusal{
		Call: r.URL.Path, ReceivedAt: e.now().UTC(), Credential: hex.EncodeToString(sum[:8]),
	})
}

// Refusals returns every refusal from number since on, in order.
func (e *Engine) Refusals(since int) []Refusal { return from(e, &e.memory.refusals, since) }
