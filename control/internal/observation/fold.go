package observation

import (
	"cmp"
	"math"

	"storefront.internal/shared/catalog"
	"storefront.internal/shared/ident"
)

// Applied is the applied revision of an entity. The zero value is an entity that was never delivered.
type Applied struct {
	Revision      int64
	Operation     catalog.Operation
	Digest        string
	ObservationID ident.ObservationID
	FetchSeq      int64 // sequence number of the applied fetch, of a provider's entity
	StoredSeq     int64 // sequence number that was taken when that fetch was stored
	Redacted      bool  // its data was erased and is not stored again

	// Of the last observation of the entity that is in the quarantine; zero when there is none.
	QuarantinedID       ident.ObservationID
	QuarantinedDigest   string // of the bytes, of a fetched one
	QuarantinedRevision int64  // the greatest of those in the quarantine
}

// Outcome is what became of an element.
type Outcome struct {
	Status        Status
	ObservationID ident.ObservationID // its own, or the one that it repeats
	FetchAgain    bool                // of a fetched element: see compareFetch
}

// Fold compares the elements with the applied revisions, in order, as if each had come alone: two elements of
// one entity are two observations. It returns an outcome for each element and updates applied.
func (b *Batch) Fold(applied map[Key]Applied) []Outcome {
	outcomes := make([]Outcome, len(b.Elements))
	for i := range b.Elements {
		e := &b.Elements[i]
		outcomes[i] = Outcome{Status: Quarantined, ObservationID: cmp.Or(b.Replays, e.ID)}
		a := applied[e.Key()]
		switch {
		case a.Redacted: // as if it had not changed, so it is not archived
			outcomes[i] = Outcome{Status: Duplicate, ObservationID: a.ObservationID}
		case e.Quarantined != nil:
			outcomes[i] = b.quarantine(e, &a)
		case e.FetchSeq > 0:
			outcomes[i] = b.compareFetch(e, &a)
		default:
			if outcomes[i] = e.compareRevision(a); outcomes[i].Status == Accepted {
				a.Revision, a.Operation, a.Digest, a.ObservationID = e.Revision, e.Operation, e.Digest, e.ID
			}
		}
		if outcomes[i].supersedes() && a.QuarantinedRevision <= e.supersededRevision(&a) {
			a.QuarantinedID, a.QuarantinedDigest, a.QuarantinedRevision = "", "", 0
		}
		if e.ExternalID != "" {
			applied[e.Key()] = a
		}
	}
	return outcomes
}

// quarantine records an element that breaks a rule. One that was fetched with the bytes of the last one is
// the same observation.
func (b *Batch) quarantine(e *Element, a *Applied) Outcome {
	if b.Replays != "" {
		return Outcome{Status: Quarantined, ObservationID: b.Replays}
	}
	digest := ""
	if e.FetchSeq > 0 {
		if digest = catalog.Digest(e.Raw); digest == a.QuarantinedDigest {
			return Outcome{Status: Quarantined, ObservationID: a.QuarantinedID}
		}
	}
	a.QuarantinedID, a.QuarantinedDigest = e.ID, digest
	a.QuarantinedRevision = max(a.QuarantinedRevision, e.Revision)
	return Outcome{Status: Quarantined, ObservationID: e.ID}
}

// supersedes reports whether an element with this outcome makes those obsolete that are in the quarantine.
func (o Outcome) supersedes() bool { return o.Status == Accepted || o.Status == Duplicate }

// supersededRevision is the greatest revision in the quarantine that the element makes obsolete. The
// quarantined answers of a provider have no revision of their own.
func (e *Element) supersededRevision(a *Applied) int64 {
	if e.FetchSeq > 0 || a.Redacted {
		return math.MaxInt64
	}
	return a.Revision
}

// Superseded is what leaves the quarantine: the observations of an entity up to a revision, except those of
// the batch that came after the element that was accepted.
type Superseded struct {
	Key      Key
	Revision int64
}

// Superseded returns what leaves the quarantine, and the elements of the batch that stay. before and after
// are what was applied before and after Fold.
func (b *Batch) Superseded(outcomes []Outcome, before, after map[Key]Applied) (all []Superseded,
	stay []ident.ObservationID) {
	quarantined := make(map[Key][]ident.ObservationID)
	for i := range b.Elements {
		e := &b.Elements[i]
		k, a := e.Key(), after[e.Key()]
		switch {
		case outcomes[i].Status == Quarantined:
			quarantined[k] = append(quarantined[k], e.ID)
		case outcomes[i].supersedes() && (before[k].QuarantinedID != "" || len(quarantined[k]) > 0):
			all = append(all, Superseded{k, e.supersededRevision(&a)})
			delete(quarantined, k)
		}
	}
	for _, ids := range quarantined {
		stay = append(stay, ids...)
	}
	return all, stay
}

// compareRevision is the compare-and-set of delivered revisions. A delete has the digest of no bytes, which
// no document has.
func (e *Element) compareRevision(a Applied) Outcome {
	switch {
	case e.Revision > a.Revision:
		return Outcome{Status: Accepted, ObservationID: e.ID}
	case e.Revision < a.Revision:
		return Outcome{Status: Stale, ObservationID: e.ID}
	case e.Digest == a.Digest:
		return Outcome{Status: Duplicate, ObservationID: a.ObservationID}
	default:
		return Outcome{Status: Conflict, ObservationID: e.ID}
	}
}

// compareFetch is the compare-and-set of fetched entities. A fetch that began before the applied one changes
// nothing, an equal digest changes only the fetch sequence number, and everything else is the next revision.
// So a delete wins over fetches that began before it, even of an entity that was never seen.
//
// A fetch that began after the applied one, but before that one was stored, may have read the provider before
// or after it. Unless both agree, the entity is fetched again, and until then such a fetch changes nothing
// but a delete, which wins over what began before it.
func (b *Batch) compareFetch(e *Element, a *Applied) Outcome {
	e.Revision = max(a.Revision, 1) // a stale one shows the revision that it lost to
	if e.FetchSeq < a.FetchSeq {
		return Outcome{Status: Stale, ObservationID: e.ID}
	}
	if e.Operation == catalog.Delete && a.Revision == 0 || e.Operation == a.Operation &&
		e.Digest == a.Digest {
		a.FetchSeq = e.FetchSeq
		return Outcome{Status: Duplicate, ObservationID: a.ObservationID}
	}
	overlaps := e.FetchSeq > a.FetchSeq && e.FetchSeq < a.StoredSeq
	if overlaps && e.Operation != catalog.Delete {
		return Outcome{Status: Stale, ObservationID: e.ID, FetchAgain: true}
	}
	a.FetchSeq = e.FetchSeq
	e.Revision = a.Revision + 1
	if e.Content != nil {
		e.Completed = catalog.CompleteDocument(e.Content, catalog.Identity{
			ConnectionID: b.Source.ConnectionID, StoreID: b.Source.StoreID, ExternalID: e.ExternalID,
			Revision: e.Revision,
		})
	}
	a.Revision, a.Operation, a.Digest, a.ObservationID = e.Revision, e.Operation, e.Digest, e.ID
	return Outcome{Status: Accepted, ObservationID: e.ID, FetchAgain: overlaps}
}

// State is the state in which an element is archived; ok is false when it is not archived. A replayed element
// is archived already, unless it was accepted, which makes it another observation.
func (b *Batch) State(e *Element, o Outcome) (state string, ok bool) {
	if o.Status == Duplicate || o.Status == Quarantined && o.ObservationID != e.ID ||
		b.Replays != "" && o.Status != Accepted {
		return "", false
	}
	return string(o.Status), true
}
