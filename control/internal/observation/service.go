package observation

import (
	"context"
	"time"

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
}

// New returns a Service.
func New(store Store, archive Archive, metrics *Metrics, now func() time.Time) *Service {
	return &Service{store: store, archive: archive, metrics: metrics, now: now}
}

// Deliver returns a result for each element of the body, in order. Its errors are those of catalog.Split,
// which stores nothing, and service_unavailable, after which the elements may or may not be stored: the same
// body may be sent again.
func (s *Service) Deliver(ctx context.Context, from Source, body []byte) ([]Result, error) {
	sent, err := catalog.Split(body)
	if err != nil {
		return nil, err
	}
	began := s.now()
	b := &Batch{Source: from, At: began, Elements: make([]Element, 0, len(sent))}
	results := make([]Result, len(sent))
	positions := make([]int, 0, len(sent)) // of the elements in the results
	for i, element := range sent {
		o := catalog.ReadObservation(element)
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

// add appends an observation with a new id.
func (b *Batch) add(o catalog.Observation, sent []byte) {
	e := Element{Observation: o, Raw: sent, ID: ident.ObservationID(ident.RandomAt(ident.Observation, b.At))}
	if o.Quarantined == nil {
		if o.Content != nil {
			e.Document = catalog.Complete(o.Content, catalog.Identity{
				ConnectionID: b.Source.ConnectionID, StoreID: b.Source.StoreID, ExternalID: o.ExternalID,
				Revision: o.Revision,
			})
		}
		e.Digest = catalog.Digest(e.Document)
	}
	b.Elements = append(b.Elements, e)
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
	o := catalog.ReadObservation(q.Raw)
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
