package observation

import (
	"time"

	"storefront.internal/shared/catalog"
	"storefront.internal/shared/ident"
)

// Status is what became of an element.
type Status string

// The closed set of statuses.
const (
	Accepted    Status = "accepted"
	Duplicate   Status = "duplicate"   // this revision with this digest is applied
	Stale       Status = "stale"       // a newer revision is applied
	Conflict    Status = "conflict"    // this revision is applied with other content
	Quarantined Status = "quarantined" // archived; Reason names rule and pointer
	Rejected    Status = "rejected"    // not archived; Reason is a catalog.Rejection
)

// Statuses returns the closed set.
func Statuses() []Status {
	return []Status{Accepted, Duplicate, Stale, Conflict, Quarantined, Rejected}
}

// The states in which an observation leaves the quarantine.
const (
	StateReplayed   = "replayed"   // its content was accepted, as another observation
	StateSuperseded = "superseded" // the entity had moved on
)

// Source is the connection that an observation comes from.
type Source struct {
	ConnectionID ident.ConnectionID
	StoreID      ident.StoreID
	Provider     string
}

// Result is what the connector is told of one element.
type Result struct {
	Index         int
	Status        Status
	ObservationID ident.ObservationID // empty for a rejected one
	EntityID      string              // empty when entity or external_id could not be read
	Reason        string              // of a quarantined or rejected one
}

// PartBytes is about how many bytes of documents one statement writes.
const PartBytes = 2 << 20

// Element is an observation that can be archived.
type Element struct {
	catalog.Observation
	ID     ident.ObservationID
	Raw    []byte // exact bytes of the element
	Digest string // of the completed document or of what a provider sent; empty when quarantined
	// Content is the document of a fetched element, which Fold completes.
	Content catalog.Document
	// dropped says that the document is read again when it is written: see Batch.add.
	dropped bool
	// FetchSeq is the sequence number that a fetch took before it began, 0 for delivered elements. Fold gives
	// a fetched element its revision and its document.
	FetchSeq int64
}

// Key names an entity of a connection.
type Key struct {
	Entity     catalog.Entity
	ExternalID string
}

// Key names the element's entity.
func (e *Element) Key() Key { return Key{e.Entity, e.ExternalID} }

// Batch is what one transaction applies.
type Batch struct {
	Source   Source
	At       time.Time // when the elements were received; their ids carry it
	Elements []Element
	kept     int // bytes of the elements' documents
	// Replays is the quarantined observation that is read again as the only element.
	Replays ident.ObservationID
}

// LockKeys returns the distinct entities to lock: those of all elements that name theirs.
func (b *Batch) LockKeys() []Key {
	seen := make(map[Key]bool, len(b.Elements))
	keys := make([]Key, 0, len(b.Elements))
	for i := range b.Elements {
		e := &b.Elements[i]
		if k := e.Key(); e.ExternalID != "" && !seen[k] {
			seen[k] = true
			keys = append(keys, k)
		}
	}
	return keys
}

// Snapshot is the canonical snapshot of an accepted observation of a custom connection.
type Snapshot struct {
	ObservationID   ident.ObservationID
	Provider        string
	ExternalStoreID string
	Entity          catalog.Entity
	ExternalID      string
	Revision        int64
	Operation       catalog.Operation
	ContentDigest   string
	Document        []byte // nil for a delete
}

// QuarantinedObservation is an entry of the quarantine.
type QuarantinedObservation struct {
	ObservationID ident.ObservationID
	Entity        catalog.Entity
	ExternalID    string
	Revision      int64
	Reason        string
	At            time.Time
}

// InQuarantine is an observation that is in the quarantine.
type InQuarantine struct {
	Source Source
	Key    Key
	Reason string
	Raw    []byte
}

// Page is a page of the quarantine, newest first. Cursor is empty on the last page.
type Page struct {
	Observations []QuarantinedObservation
	Cursor       string
}
