package engine

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"time"
)

// Refusal is a request that was answered 401: what it was for, when it came, and a digest of what it carried as credential.
type Refusal struct {
	Call       string    `json:"call"`
	ReceivedAt time.Time `json:"received_at"`
	Credential string    `json:"credential"`
}

// refused notes a request that is answered 401.
func (e *Engine) refused(r *http.Request) {
	sum := sha256.Sum256([]byte(r.Header.Get("Authorization")))
	e.mu.Lock()
	defer e.mu.Unlock()
	e.memory.refusals = append(e.memory.refusals, Refusal{Call: r.URL.Path, ReceivedAt: e.now().UTC(), Credential: hex.EncodeToString(sum[:8])})
}

// Refusals answers every refusal from number since on, in order.
func (e *Engine) Refusals(since int) []Refusal {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]Refusal{}, from(e.memory.refusals, since)...)
}

func (e *Engine) showRefusals(w http.ResponseWriter, r *http.Request) {
	if since, ok := sinceOf(w, r); ok {
		writeJSON(w, http.StatusOK, map[string]any{"refusals": e.Refusals(since)})
	}
}
