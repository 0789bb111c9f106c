package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"sync"
	"time"
)

// Observed is what an event says of an entity (contract, section 4).
type Observed struct {
	ObservationID string `json:"observation_id"`
	ConnectionID  string `json:"connection_id"`
	Entity        string `json:"entity"`
	ExternalID    string `json:"external_id"`
	Revision      int64  `json:"revision"`
	Operation     string `json:"operation"`
	ContentDigest string `json:"content_digest"`
	Snapshot      string `json:"snapshot"` // canonical (operation 10) or raw (operation 11)
	Subject       string `json:"-"`        // of the event: our id of the entity, which a raw snapshot does not know
}

// Reading is what came of reading the snapshot of one observation. It never holds what the snapshot says: an order's is
// somebody's.
type Reading struct {
	ObservationID string    `json:"observation_id"`
	ConnectionID  string    `json:"connection_id"`
	Entity        string    `json:"entity"`
	ExternalID    string    `json:"external_id"`
	Revision      int64     `json:"revision"`
	Operation     string    `json:"operation"`
	Result        string    `json:"result"`
	Detail        string    `json:"detail,omitempty"`
	ReadAt        time.Time `json:"read_at"`
}

// The results of a reading. Missing and mismatch must never happen: an envelope is told of after its snapshot is there.
const (
	SnapshotRead        = "read"        // what it says agrees with the event, and so do both digests
	SnapshotMissing     = "missing"     // 404
	SnapshotMismatch    = "mismatch"    // it says something else than the event, or a digest does not fit
	SnapshotUnreachable = "unreachable" // no answer, or one that does not count; it is tried again
)

const (
	readers      = 8               // at once
	readWithin   = 3 * time.Second // one attempt
	readAttempts = 60
	readPause    = 500 * time.Millisecond
)

// ReadSnapshots lets the engine read the snapshot of everything that it is told of from now on: baseURL is the internal
// surface's, the token is the engine principal's.
func (e *Engine) ReadSnapshots(baseURL, token string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.source = &source{baseURL: baseURL, token: token, client: &http.Client{Timeout: readWithin}}
}

// Readings answers every reading from number since on, in order.
func (e *Engine) Readings(since int) []Reading {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]Reading{}, from(e.memory.readings, since)...)
}

// observe reads the snapshots of a batch before the batch is answered, as "the moment it is told" is the hardest one.
func (e *Engine) observe(events []json.RawMessage) {
	e.mu.Lock()
	source := e.source
	e.mu.Unlock()
	if source == nil {
		return
	}
	slots := make(chan struct{}, readers)
	var all sync.WaitGroup
	for _, raw := range events {
		var event struct {
			Subject string   `json:"subject"`
			Data    Observed `json:"data"`
		}
		if err := json.Unmarshal(raw, &event); err != nil || event.Data.ObservationID == "" {
			continue
		}
		event.Data.Subject = event.Subject
		slots <- struct{}{}
		all.Go(func() {
			e.read(source, event.Data, 1)
			<-slots
		})
	}
	all.Wait()
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.save(); err != nil {
		fmt.Fprintln(os.Stderr, "engine: not kept:", err)
	}
}

// read makes one attempt, learns from it, and comes back later when the snapshot could not be reached.
func (e *Engine) read(s *source, o Observed, attempt int) {
	ctx, cancel := context.WithTimeout(context.Background(), readWithin)
	defer cancel()
	known, result, detail := s.read(ctx, o)
	e.mu.Lock()
	defer e.mu.Unlock()
	if result == SnapshotRead {
		e.memory.shelves.learn(o, known)
	}
	e.memory.readings = append(e.memory.readings, Reading{o.ObservationID, o.ConnectionID, o.Entity, o.ExternalID, o.Revision, o.Operation,
		result, detail, e.now().UTC()})
	if result == SnapshotUnreachable && attempt < readAttempts {
		time.AfterFunc(readPause, func() { e.read(s, o, attempt+1) })
	}
}

func (e *Engine) showSnapshots(w http.ResponseWriter, r *http.Request) {
	if since, ok := sinceOf(w, r); ok {
		writeJSON(w, http.StatusOK, map[string]any{"snapshots": e.Readings(since)})
	}
}
