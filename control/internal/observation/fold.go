package observation

import (
	"cmp"

	"storefront.internal/shared/catalog"
	"storefront.internal/shared/ident"
)

// Applied is the revision of an entity that is applied. The zero value is an entity that nobody has delivered.
type Applied struct {
	Revision      int64
	Operation     catalog.Operation
	Digest        string
	ObservationID ident.ObservationID
	Fetch         int64 // the number of the fetch that is applied, of a provider's entity
	Redacted      bool  // nothing of it is kept any more
}

// Outcome is what became of an element, before it is told to anybody.
type Outcome struct {
	Status        Status
	ObservationID ident.ObservationID // its own, or the one that it repeats
}

// Fold compares the elements with the applied revisions in the order of the array, as if each had come alone: two
// elements of one entity are two observations. It returns an outcome for each element and leaves in applied what is
// applied after the batch.
func (b *Batch) Fold(applied map[Key]Applied) []Outcome {
	outcomes := make([]Outcome, len(b.Elements))
	for i := range b.Elements {
		e := &b.Elements[i]
		outcomes[i] = Outcome{Status: Quarantined, ObservationID: cmp.Or(b.Replays, e.ID)}
		a := applied[e.Key()]
		if a.Redacted { // as if it had not changed: it is not archived
			outcomes[i] = Outcome{Duplicate, a.ObservationID}
			continue
		}
		if e.Quarantined != nil {
			continue
		}
		if e.Fetch > 0 {
			outcomes[i] = b.number(e, &a)
		} else if outcomes[i] = e.compare(a); outcomes[i].Status == Accepted {
			a = Applied{Revision: e.Revision, Operation: e.Operation, Digest: e.Digest, ObservationID: e.ID}
		}
		applied[e.Key()] = a
	}
	return outcomes
}

// compare is the compare-and-set. A delete has the digest of nothing, which no document has.
func (e *Element) compare(a Applied) Outcome {
	switch {
	case e.Revision > a.Revision:
		return Outcome{Accepted, e.ID}
	case e.Revision < a.Revision:
		return Outcome{Stale, e.ID}
	case e.Digest == a.Digest:
		return Outcome{Duplicate, a.ObservationID}
	default:
		return Outcome{Conflict, e.ID}
	}
}

// number is the compare-and-set of what was fetched (contract, section 3 "Revision"): a fetch that began earlier than the
// applied one changes nothing, an equal digest changes nothing but that number, and everything else is the next revision.
// So a delete wins over fetches that began before it, even of an entity that nobody has seen.
func (b *Batch) number(e *Element, a *Applied) Outcome {
	e.Revision = max(a.Revision, 1) // of a stale one: the revision that it lost to
	if e.Fetch < a.Fetch {
		return Outcome{Stale, e.ID}
	}
	a.Fetch = e.Fetch
	if e.Operation == catalog.Delete && a.Revision == 0 || e.Operation == a.Operation && e.Digest == a.Digest {
		return Outcome{Duplicate, a.ObservationID}
	}
	e.Revision = a.Revision + 1
	if e.Content != nil {
		e.Document = catalog.Complete(e.Content, catalog.Identity{
			ConnectionID: b.Source.ConnectionID, StoreID: b.Source.StoreID, ExternalID: e.ExternalID, Revision: e.Revision,
		})
	}
	a.Revision, a.Operation, a.Digest, a.ObservationID = e.Revision, e.Operation, e.Digest, e.ID
	return Outcome{Accepted, e.ID}
}

// State is the state in which an element is archived; ok is false when it is not. What is replayed lies in the archive
// already, unless it was accepted, which makes it another observation.
func (b *Batch) State(o Outcome) (state string, ok bool) {
	if o.Status == Duplicate || b.Replays != "" && o.Status != Accepted {
		return "", false
	}
	return string(o.Status), true
}
