package engine

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// Receipt is one interaction as it arrived and what was answered.
type Receipt struct {
	Result      string          `json:"result"` // created, exists, rejected
	ReceivedAt  time.Time       `json:"received_at"`
	Interaction json.RawMessage `json:"interaction"`
}

type memory struct {
	known        map[identity]struct{}
	receipts     []Receipt
	observations []json.RawMessage
	readings     []Reading
	refusals     []Refusal
	shelves      shelves
}

type identity struct {
	Connection string `json:"connection_id"`
	Signal     string `json:"signal_id"`
}

func newMemory() memory { return memory{known: map[identity]struct{}{}, shelves: shelves{}} }

type result struct {
	Index  int    `json:"index"`
	Status string `json:"status"`
	Reason string `json:"reason,omitempty"`
}

// takeInteractions stores what is new: the same connection and signal id again is `exists`.
func (e *Engine) takeInteractions(body []byte, b Behaviour) (int, any) {
	var request struct {
		Interactions []json.RawMessage `json:"interactions"`
	}
	if err := json.Unmarshal(body, &request); err != nil || len(request.Interactions) == 0 {
		return http.StatusBadRequest, problem{"invalid_request"}
	}
	if len(request.Interactions) > maxInteractions {
		return http.StatusUnprocessableEntity, problem{"too_many_interactions"}
	}
	ids := make([]identity, len(request.Interactions))
	for i, raw := range request.Interactions {
		if err := json.Unmarshal(raw, &ids[i]); err != nil || ids[i].Connection == "" || ids[i].Signal == "" {
			return http.StatusBadRequest, problem{"invalid_request"}
		}
	}
	results := make([]result, len(ids))
	e.mu.Lock()
	defer e.mu.Unlock()
	for i, id := range ids {
		status := e.memory.judge(id, b)
		results[i] = result{Index: i, Status: status}
		if status == "rejected" {
			results[i].Reason = "told_to"
		}
		e.memory.receipts = append(e.memory.receipts, Receipt{status, e.now().UTC(), request.Interactions[i]})
	}
	return http.StatusOK, map[string]any{"results": results}
}

func (m *memory) judge(id identity, b Behaviour) string {
	if b.rejects(id.Signal) {
		return "rejected"
	}
	if _, known := m.known[id]; known {
		return "exists"
	}
	m.known[id] = struct{}{}
	return "created"
}

// takeObservations keeps the events of a CloudEvents batch and reads their snapshots.
func (e *Engine) takeObservations(body []byte, _ Behaviour) (int, any) {
	var events []json.RawMessage
	if err := json.Unmarshal(body, &events); err != nil || len(events) == 0 {
		return http.StatusBadRequest, problem{"invalid_request"}
	}
	e.mu.Lock()
	e.memory.observations = append(e.memory.observations, events...)
	e.mu.Unlock()
	e.observe(events)
	return http.StatusAccepted, nil
}

// Receipts answers every receipt from number since on, in order.
func (e *Engine) Receipts(since int) []Receipt {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]Receipt{}, from(e.memory.receipts, since)...)
}

// Observations answers every event from number since on, in order.
func (e *Engine) Observations(since int) []json.RawMessage {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]json.RawMessage{}, from(e.memory.observations, since)...)
}

func from[T any](all []T, since int) []T {
	return all[min(max(since, 0), len(all)):]
}

func (e *Engine) showInteractions(w http.ResponseWriter, r *http.Request) {
	if since, ok := sinceOf(w, r); ok {
		writeList(w, "interactions", e.Receipts(since))
	}
}

func (e *Engine) showObservations(w http.ResponseWriter, r *http.Request) {
	if since, ok := sinceOf(w, r); ok {
		writeList(w, "observations", e.Observations(since))
	}
}

// writeList writes an object with one array, element by element: a long run's receipts are too many to encode at once.
func writeList[T any](w http.ResponseWriter, name string, all []T) {
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, "{%q:[", name)
	for i := range all {
		if i > 0 {
			fmt.Fprint(w, ",")
		}
		if json.NewEncoder(w).Encode(&all[i]) != nil {
			return // the caller is gone
		}
	}
	fmt.Fprint(w, "]}")
}

func sinceOf(w http.ResponseWriter, r *http.Request) (int, bool) {
	text := r.URL.Query().Get("since")
	if text == "" {
		return 0, true
	}
	since, err := strconv.Atoi(text)
	if err != nil || since < 0 {
		writeJSON(w, http.StatusBadRequest, problem{"invalid_request"})
		return 0, false
	}
	return since, true
}

// showKnown answers 204 when the interaction of `connection_id` and `signal_id` was created, else 404.
func (e *Engine) showKnown(w http.ResponseWriter, r *http.Request) {
	id := identity{r.URL.Query().Get("connection_id"), r.URL.Query().Get("signal_id")}
	e.mu.Lock()
	_, known := e.memory.known[id]
	e.mu.Unlock()
	if known {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	writeJSON(w, http.StatusNotFound, problem{"not_found"})
}
