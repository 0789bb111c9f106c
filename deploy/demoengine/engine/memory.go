package engine

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// Receipt is one interaction as it arrived and its result.
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
	catalogs     catalogs
}

type identity struct {
	Connection string `json:"connection_id"`
	Signal     string `json:"signal_id"`
}

func newMemory() memory { return memory{known: map[identity]struct{}{}, catalogs: catalogs{}} }

type result struct {
	Index  int    `json:"index"`
	Status string `json:"status"`
	Reason string `json:"reason,omitempty"`
}

// recordInteractions stores new interactions; a connection and signal id that was stored before is `exists`.
func (e *Engine) recordInteractions(body []byte, b Behaviour) (int, any) {
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
		status := e.memory.classify(id, b)
		results[i] = result{Index: i, Status: status}
		if status == "rejected" {
			results[i].Reason = "told_to"
		}
		e.memory.receipts = append(e.memory.receipts, Receipt{status, e.now().UTC(), request.Interactions[i]})
	}
	return http.StatusOK, map[string]any{"results": results}
}

func (m *memory) classify(id identity, b Behaviour) string {
	if b.rejects(id.Signal) {
		return "rejected"
	}
	if _, known := m.known[id]; known {
		return "exists"
	}
	m.known[id] = struct{}{}
	return "created"
}

// deliverObservations keeps the events of a CloudEvents batch and reads their snapshots.
func (e *Engine) deliverObservations(body []byte, _ Behaviour) (int, any) {
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

// Receipts returns every receipt from number since on, in order.
func (e *Engine) Receipts(since int) []Receipt { return from(e, &e.memory.receipts, since) }

// Observations returns every event from number since on, in order.
func (e *Engine) Observations(since int) []json.RawMessage {
	return from(e, &e.memory.observations, since)
}

// from returns a copy of the elements of a list of the engine's from number since on.
func from[T any](e *Engine, list *[]T, since int) []T {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]T{}, (*list)[min(max(since, 0), len(*list)):]...)
}

// show answers a list from the number of the query `since` on. It writes the elements one by one: the
// receipts of a long run are too many to encode at once.
func show[T any](name string, list func(since int) []T) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		since, err := strconv.Atoi(cmp.Or(r.URL.Query().Get("since"), "0"))
		if err != nil || since < 0 {
			writeJSON(w, http.StatusBadRequest, problem{"invalid_request"})
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, "{%q:[", name)
		for i, one := range list(since) {
			if i > 0 {
				fmt.Fprint(w, ",")
			}
			if json.NewEncoder(w).Encode(one) != nil {
				return // the caller is gone
			}
		}
		fmt.Fprint(w, "]}")
	}
}

// showKnown answers 204 when the interaction of the queries connection_id and signal_id was created, else
// 404.
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
