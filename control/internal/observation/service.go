package observation

import (
	"context"
	"time"

	"golang.org/x/sync/semaphore"

	"storefront.internal/shared/catalog"
	"storefront.internal/shared/fault"
	"storefront.internal/shared/ident"
)

// Store applies observations.
type Store interface {
	// Apply folds a batch over the applied revisions and writes everything that follows. It returns an
	// outcome for each element, or not_found when the observation that the batch replays has left the
	// quarantine.
	Apply(ctx context.Context, b *Batch) ([]Outcome, error)
	// RequestFetch enqueues the fetch of a provider's entity, which has this observation in the quarantine.
	RequestFetch(ctx context.Context, c ident.ConnectionID, key Key, id ident.ObservationID) error
}

// Archive reads archived observations.
type Archive interface {
	// Snapshot returns not_found for anything but an accepted observation of a custom connection.
	Snapshot(ctx context.Context, id ident.ObservationID) (Snapshot, error)
	// Raw returns the archived body of an accepted observation of a provider's connection, or not_found.
	Raw(ctx context.Context, id ident.ObservationID) ([]byte, error)
	// Quarantine reads a page of observations older than the id, newest first; an empty id starts at the
	// newest. It returns not_found for a connection that does not exist.
	Quarantine(ctx context.Context, c ident.ConnectionID, before ident.ObservationID,
		limit int) ([]QuarantinedObservation, error)
	// Quarantined returns an observation that is in the quarantine, or not_found.
	Quarantined(ctx context.Context, c ident.ConnectionID, id ident.ObservationID) (InQuarantine, error)
}

// pageSize is the length of a page of the quarantine.
const pageSize = 100

// Service applies delivered observations and reads archived ones.
type Service struct {
	store   Store
	archive Archive
	metrics *Metrics
	now     func() time.Time
	work    *semaphore.Weighted // bytes
	budget  int64
}

// New returns a Service. Work on delivered bodies that needs more bytes than the budget waits for other work.
func New(store Store, archive Archive, metrics *Metrics, now func() time.Time, budget int64) *Service {
	return &Service{store: store, archive: archive, metrics: metrics, now: now,
		work: semaphore.NewWeighted(budget), budget: budget}
}

// Deliver returns a result for each element of the body, in order. Its errors are those of catalog.Split,
// which stores nothing, and service_unavailable, after which the elements may or may not be stored: the same
// body may be sent again.
//
// It works element by element. What it holds of all of them are the body, at most PartBytes of completed
// documents of products, and what the results say.
func (s *Service) Deliver(ctx context.Context, from Source, body []byte) ([]Result, error) {
	sent, err := catalog.Split(body)
	if err != nil {
		return nil, err
	}
	work := min(workOn(body, sent), s.budget)
	if err := s.work.Acquire(ctx, work); err != nil {
		return nil, &fault.Error{Code: fault.ServiceUnavailable,
			Detail: "Too many bodies are being worked on right now.", RetryAfter: time.Second}
	}
	defer s.work.Release(work)
	began := s.now()
	b := &Batch{Source: from, At: began, Elements: make([]Element, 0, len(sent))}
	results := make([]Result, len(sent))
	positions := make([]int, 0, len(sent)) // of the elements in the results
	var reader catalog.Reader
	for i, element := range sent {
		o := reader.Read(element, from.ConnectionID, from.StoreID)
		results[i] = Result{Index: i, EntityID: entityID(from.ConnectionID, &o)}
		if o.Rejected != "" {
			results[i].Status, results[i].Reason = Rejected, string(o.Rejected)
			continue
		}
		b.add(o, element)
		positions = append(positions, i)
	}
	if len(b.Elements) > 0 {
		outcomes, err := s.store.Apply(ctx, b)
		if err != nil {
			return nil, err
		}
		for n, outcome := range outcomes {
			results[positions[n]].set(&b.Elements[n], outcome)
		}
	}
	s.metrics.delivered(b, results, s.now().Sub(began))
	return results, nil
}

// workOn is what the work on the elements of a body needs, in bytes: the largest one as a tree, as documents
// and in the buffers of a statement, or that many small ones.
func workOn(body []byte, elements [][]byte) int64 {
	const times = 10
	largest := PartBytes
	for _, element := range elements {
		largest = max(largest, min(len(element), catalog.MaxDocument))
	}
	return times * int64(min(largest, len(body)))
}

// add appends an observation with a new id. When a batch has kept PartBytes of documents, those of further
// products are read again when they are written: ids can make them several times larger than they were sent.
func (b *Batch) add(o catalog.Observation, sent []byte) {
	e := Element{Observation: o, Raw: sent, ID: ident.ObservationID(ident.RandomAt(ident.Observation, b.At))}
	if o.Quarantined == nil {
		e.Digest = catalog.Digest(o.Completed.Document)
		if b.kept += len(o.Completed.Document); o.Completed.Product && b.kept > PartBytes {
			e.Completed.Document, e.dropped = nil, true
		}
	}
	b.Elements = append(b.Elements, e)
}

// CompletedDocument returns the canonical bytes of an element, nil when it has none.
func (b *Batch) CompletedDocument(e *Element) []byte { return e.completed(&b.Source).Document }

// completed returns the completed document, and reads it again if it was dropped.
func (e *Element) completed(from *Source) *catalog.Completed {
	if !e.dropped {
		return &e.Completed
	}
	o := new(catalog.Reader).Read(e.Raw, from.ConnectionID, from.StoreID)
	return &o.Completed
}

// entityID is our id of the element's entity, "" when the element does not name it.
func entityID(c ident.ConnectionID, o *catalog.Observation) string {
	if o.Entity == "" || o.ExternalID == "" {
		return ""
	}
	return o.Entity.ID(c, o.ExternalID)
}

func (r *Result) set(e *Element, o Outcome) {
	r.Status, r.ObservationID = o.Status, o.ObservationID
	if o.Status == Quarantined {
		r.Reason = e.Quarantined.String()
	}
}

// Snapshot returns a canonical snapshot.
func (s *Service) Snapshot(ctx context.Context, id ident.ObservationID) (Snapshot, error) {
	return s.archive.Snapshot(ctx, id)
}

// Raw returns an archived raw body.
func (s *Service) Raw(ctx context.Context, id ident.ObservationID) ([]byte, error) {
	return s.archive.Raw(ctx, id)
}

// Quarantine returns a page of the quarantine. The cursor is empty or that of a page.
func (s *Service) Quarantine(ctx context.Context, c ident.ConnectionID, cursor string) (Page, error) {
	if cursor != "" && !ident.Valid(ident.Observation, cursor) {
		return Page{}, fault.New(fault.InvalidRequest, "The cursor is not one of a page.")
	}
	held, err := s.archive.Quarantine(ctx, c, ident.ObservationID(cursor), pageSize+1)
	if err != nil {
		return Page{}, err
	}
	if len(held) <= pageSize {
		return Page{Observations: held}, nil
	}
	return Page{Observations: held[:pageSize], Cursor: string(held[pageSize-1].ObservationID)}, nil
}

// Replay reads a quarantined element again by the present rules and compares it again. An accepted one
// becomes another observation; unless it is quarantined again, the element leaves the quarantine. What a
// provider returned is fetched again, and leaves the quarantine when the entity is accepted.
func (s *Service) Replay(ctx context.Context, c ident.ConnectionID, id ident.ObservationID) (Result, error) {
	q, err := s.archive.Quarantined(ctx, c, id)
	if err != nil {
		return Result{}, err
	}
	if q.Source.Provider != ProviderCustom {
		return s.fetchAgain(ctx, &q, id)
	}
	b := &Batch{Source: q.Source, At: s.now(), Replays: id}
	o := new(catalog.Reader).Read(q.Raw, q.Source.ConnectionID, q.Source.StoreID)
	if o.Rejected != "" { // it could be read before
		return Result{}, fault.New(fault.InternalError, "")
	}
	b.add(o, q.Raw)
	outcomes, err := s.store.Apply(ctx, b)
	if err != nil {
		return Result{}, err
	}
	r := Result{EntityID: entityID(c, &o)}
	r.set(&b.Elements[0], outcomes[0])
	s.metrics.replayed(r.Status)
	return r, nil
}

// fetchAgain asks for the fetch of the entity of a provider's observation, which stays in the quarantine
// until the fetch is accepted.
func (s *Service) fetchAgain(ctx context.Context, q *InQuarantine, id ident.ObservationID) (Result, error) {
	if q.Key.ExternalID == "" {
		return Result{}, fault.New(fault.NotFound, "The observation names no entity to fetch again.")
	}
	if err := s.store.RequestFetch(ctx, q.Source.ConnectionID, q.Key, id); err != nil {
		return Result{}, err
	}
	s.metrics.replayed(Quarantined)
	return Result{Status: Quarantined, ObservationID: id, Reason: q.Reason,
		EntityID: q.Key.Entity.ID(q.Source.ConnectionID, q.Key.ExternalID)}, nil
}
