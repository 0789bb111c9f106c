package observation

import (
	"context"
	"time"

	"storefront.internal/shared/catalog"
	"storefront.internal/shared/fault"
	"storefront.internal/shared/ident"
)

// Store is where observations and what they change live. Each method is one transaction.
type Store interface {
	// Apply folds a batch over what is applied and writes all that follows. It returns an outcome for each element. A
	// batch that replays returns not_found when the replayed observation has left the quarantine.
	Apply(ctx context.Context, b *Batch) ([]Outcome, error)
	// Snapshot returns not_found for what is not an accepted observation of a custom connection.
	Snapshot(ctx context.Context, id ident.ObservationID) (Snapshot, error)
	// Raw returns the archived body of an accepted observation of a provider's connection, or not_found.
	Raw(ctx context.Context, id ident.ObservationID) ([]byte, error)
	// Quarantine reads a page, newest first, of what is older than the id; empty starts at the newest. A connection that
	// is not there is not_found.
	Quarantine(ctx context.Context, c ident.ConnectionID, before ident.ObservationID, limit int) ([]Held, error)
	// Quarantined returns a quarantined observation's source and the exact bytes of its element, or not_found.
	Quarantined(ctx context.Context, c ident.ConnectionID, id ident.ObservationID) (Source, []byte, error)
}

// pageSize is the length of a page of the quarantine.
const pageSize = 100

// Service is the use case.
type Service struct {
	store   Store
	metrics *Metrics
	now     func() time.Time
}

// New returns a Service.
func New(store Store, metrics *Metrics, now func() time.Time) *Service {
	return &Service{store: store, metrics: metrics, now: now}
}

// Deliver is operation 4: a result for each element of the body, in its order. Errors are faults: those of catalog.Split,
// with which nothing is stored, and service_unavailable, with which nothing may be: then the same body may be sent again.
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
			results[positions[n]].tell(&b.Elements[n], outcome)
		}
	}
	s.metrics.delivered(b, results, s.now().Sub(began))
	return results, nil
}

// add completes an observation and gives it its id.
func (b *Batch) add(o catalog.Observation, sent []byte) {
	e := Element{Observation: o, Sent: sent, ID: ident.ObservationID(ident.RandomAt(ident.Observation, b.At))}
	if o.Quarantined == nil {
		if o.Content != nil {
			e.Document = catalog.Complete(o.Content, catalog.Identity{
				ConnectionID: b.Source.ConnectionID, StoreID: b.Source.StoreID, ExternalID: o.ExternalID, Revision: o.Revision,
			})
		}
		e.Digest = catalog.Digest(e.Document)
	}
	b.Elements = append(b.Elements, e)
}

// entityID is our id of what the element is about, as far as it says so.
func entityID(c ident.ConnectionID, o *catalog.Observation) string {
	if o.Entity == "" || o.ExternalID == "" {
		return ""
	}
	return o.Entity.ID(c, o.ExternalID)
}

func (r *Result) tell(e *Element, o Outcome) {
	r.Status, r.ObservationID = o.Status, o.ObservationID
	if o.Status == Quarantined {
		r.Reason = e.Quarantined.String()
	}
}

// Snapshot is operation 10.
func (s *Service) Snapshot(ctx context.Context, id ident.ObservationID) (Snapshot, error) {
	return s.store.Snapshot(ctx, id)
}

// Raw is operation 11.
func (s *Service) Raw(ctx context.Context, id ident.ObservationID) ([]byte, error) {
	return s.store.Raw(ctx, id)
}

// Quarantine is the reading half of E8. The cursor is empty or that of a page.
func (s *Service) Quarantine(ctx context.Context, c ident.ConnectionID, cursor string) (Page, error) {
	if cursor != "" && !ident.Valid(ident.Observation, cursor) {
		return Page{}, fault.New(fault.InvalidRequest, "The cursor is not one of a page.")
	}
	held, err := s.store.Quarantine(ctx, c, ident.ObservationID(cursor), pageSize+1)
	if err != nil {
		return Page{}, err
	}
	if len(held) <= pageSize {
		return Page{Held: held}, nil
	}
	return Page{Held: held[:pageSize], Cursor: string(held[pageSize-1].ObservationID)}, nil
}

// Replay is the writing half of E8: the element is read again by today's rules and compared again. Accepted, it is
// another observation; whatever else it is but quarantined, it leaves the quarantine.
func (s *Service) Replay(ctx context.Context, c ident.ConnectionID, id ident.ObservationID) (Result, error) {
	source, sent, err := s.store.Quarantined(ctx, c, id)
	if err != nil {
		return Result{}, err
	}
	b := &Batch{Source: source, At: s.now(), Replays: id}
	o := catalog.ReadObservation(sent)
	if o.Rejected != "" { // it could be read once
		return Result{}, fault.New(fault.InternalError, "")
	}
	b.add(o, sent)
	outcomes, err := s.store.Apply(ctx, b)
	if err != nil {
		return Result{}, err
	}
	r := Result{EntityID: entityID(c, &o)}
	r.tell(&b.Elements[0], outcomes[0])
	s.metrics.replayed(r.Status)
	return r, nil
}
