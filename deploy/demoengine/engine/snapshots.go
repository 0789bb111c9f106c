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

// Observed is the data of an event: what it says about an entity.
type Observed struct {
	ObservationID string `json:"observation_id"`
	ConnectionID  string `json:"connection_id"`
	Entity        string `json:"entity"`
	ExternalID    string `json:"external_id"`
	Revision      int64  `json:"revision"`
	Operation     string `json:"operation"`
	ContentDigest string `json:"content_digest"`
	Snapshot      string `json:"snapshot"` // canonical or raw
	Subject       string `json:"-"`        // of the event: our id of the entity, which a raw snapshot lacks
}

// Reading is the result of reading the snapshot of one observation. It holds nothing of the snapshot, which
// may be personal data.
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

// The results of a reading. Missing and mismatch must never happen: an event is sent after its snapshot is
// stored.
const (
	SnapshotRead        = "read"        // the snapshot and both digests agree with the event
	SnapshotMissing     = "missing"     // 404
	SnapshotMismatch    = "mismatch"    // the snapshot or a digest contradicts the event
	SnapshotUnreachable = "unreachable" // no usable response; it is retried
)

const (
	readers      = 8               // at once
	readWithin   = 3 * time.Second // one attempt
	readAttempts = 60
	readPause    = 500 * time.Millisecond
)

// ReadSnapshots makes the engine read the snapshots of events from now on. baseURL is control's, token is the
// engine's.
func (e *Engine) ReadSnapshots(baseURL, token string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.source = &source{baseURL: baseURL, token: token, client: &http.Client{Timeout: readWithin}}
}

// Readings returns every reading from number since on, in order.
func (e *Engine) Readings(since int) []Reading { return from(e, &e.memory.readings, since) }

// observe reads the snapshots of a batch before the batch is answered: a snapshot has to be there the moment
// its event is sent.
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
		fmt.Fprintln(os.Stderr, "engine: the catalog could not be saved:", err)
	}
}

// read makes one attempt, applies its result, and retries later when the snapshot could not be reached.
func (e *Engine) read(s *source, o Observed, attempt int) {
	ctx, cancel := context.WithTimeout(context.Background(), readWithin)
	defer cancel()
	known, result, detail := s.read(ctx, o)
	e.mu.Lock()
	defer e.mu.Unlock()
	if result == SnapshotRead {
		e.memory.catalogs.apply(o, known)
	}
	e.memory.readings = append(e.memory.readings,
		Reading{o.ObservationID, o.ConnectionID, o.Entity, o.ExternalID, o.Revision, o.Operation,
			result, detail, e.now().UTC()})
	if result == SnapshotUnreachable && attempt < readAttempts {
		time.AfterFunc(readPause, func() { e.read(s, o, attempt+1) })
	}
}
