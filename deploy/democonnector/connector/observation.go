package connector

import "time"

// The kinds of entity.
const (
	Product  = "product"
	Category = "category"
	Order    = "order"
)

// The operations on an entity.
const (
	Upsert = "upsert"
	Delete = "delete"
)

// Observation is one element of operation 4's body: what the shop says of one entity at one revision.
type Observation struct {
	Entity     string `json:"entity"`
	ExternalID string `json:"external_id"`
	// Revision rises with every change of the entity, and a revision is never used for two contents: the greatest one wins, an
	// older one is answered `stale`, and the same one with another content `conflict`.
	Revision        int64     `json:"revision"`
	Operation       string    `json:"operation,omitempty"`
	SourceUpdatedAt time.Time `json:"source_updated_at,omitzero"`
	// Document is the entity in the form of the contract, section 3 "Custom documents"; a delete has none.
	Document any `json:"document,omitempty"`
	// Raw is what the shop's own system said. It is archived exactly as sent and read by nobody but people.
	Raw any `json:"raw,omitempty"`
}

// Result is the answer for one position of a batch.
type Result struct {
	Index         int    `json:"index"`
	Status        string `json:"status"`
	ObservationID string `json:"observation_id"`
	// EntityID is Storefront's own id of the entity: the item_id of a product.
	EntityID string `json:"entity_id"`
	// Reason says why: of `quarantined` it names the rule and the place in the document.
	Reason string `json:"reason"`
}

// The statuses of a result. All of them are final for these bytes: sending them again changes nothing.
const (
	Accepted    = "accepted"    // applied
	Duplicate   = "duplicate"   // this revision with this content is there already
	Stale       = "stale"       // a newer revision is there
	Conflict    = "conflict"    // this revision is there with other content: the connector counted wrongly
	Quarantined = "quarantined" // archived, but the document breaks a rule; the revision is still free for a mended one
	Rejected    = "rejected"    // not even archived: no external_id, entity or revision
)

// Settled tells whether the shop's present state is known to Storefront, so that nobody has to look at the entity.
func (r Result) Settled() bool {
	return r.Status == Accepted || r.Status == Duplicate || r.Status == Stale
}
