package observation

import (
	"time"

	"storefront.internal/shared/catalog"
	"storefront.internal/shared/ident"
)

// Status is what became of an element (contract, section 3 "Observation").
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

// The states in which a quarantined observation leaves the quarantine.
const (
	StateReplayed   = "replayed"   // its content was accepted, as another observation
	StateSuperseded = "superseded" // the entity had moved on
)

// Source is who delivers: a connection, its store and its provider.
type Source struct {
	ConnectionID ident.ConnectionID
	StoreID      ident.StoreID
	Provider     string
}

// Result is what a connector hears of one element.
type Result struct {
	Index         int
	Status        Status
	ObservationID ident.ObservationID // empty for a rejected one
	EntityID      string              // empty when entity or external_id could not be read
	Reason        string              // of a quarantined or rejected one
}

// Element is an observation that can be archived.
type Element struct {
	catalog.Observation
	ID       ident.ObservationID
	Sent     []byte // the exact bytes of the element
	Document []byte // the canonical bytes of a sound upsert; nil otherwise
	Digest   string // of Document, or of what a provider sent; empty for a quarantined one
	// Fetch is the number that a fetch from a provider took before it began, 0 of what a custom connector delivered. Fold
	// gives what was fetched its revision and its document.
	Fetch int64
}

// Key names an entity of a connection.
type Key struct {
	Entity     catalog.Entity
	ExternalID string
}

// Key names the element's entity.
func (e *Element) Key() Key { return Key{e.Entity, e.ExternalID} }

// Batch is what one transaction does.
type Batch struct {
	Source   Source
	At       time.Time // when the elements were received; their ids carry it
	Elements []Element
	// Replays is the quarantined observation that the batch's only element was read from again.
	Replays ident.ObservationID
}

// Keys returns the entities that sound elements name, each once, and the orders that a provider's quarantined ones name: one
// that is redacted is not archived.
func (b *Batch) Keys() []Key {
	seen := make(map[Key]bool, len(b.Elements))
	keys := make([]Key, 0, len(b.Elements))
	for i := range b.Elements {
		e := &b.Elements[i]
		if k := e.Key(); (e.Quarantined == nil || e.fetchedOrder()) && !seen[k] {
			seen[k] = true
			keys = append(keys, k)
		}
	}
	return keys
}

func (e *Element) fetchedOrder() bool {
	return e.Fetch > 0 && e.Entity == catalog.Order && e.ExternalID != ""
}

// Snapshot is the canonical snapshot of an accepted custom observation (spec.md "Canonical snapshot").
type Snapshot struct {
	ObservationID   ident.ObservationID
	Provider        string
	ExternalStoreID string
	Entity          catalog.Entity
	ExternalID      string
	Revision        int64
	Operation       catalog.Operation
	ContentDigest   string
	Document        []byte // nil of a delete
}

// Held is an observation in the quarantine.
type Held struct {
	ObservationID ident.ObservationID
	Entity        catalog.Entity
	ExternalID    string
	Revision      int64
	Reason        string
	At            time.Time
}

// Page is a page of the quarantine, newest first. Cursor is empty on the last one.
type Page struct {
	Held   []Held
	Cursor string
}
