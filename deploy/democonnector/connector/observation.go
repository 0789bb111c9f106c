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

// Observation is what the shop says of one entity at one revision: an element of the request body.
type Observation struct {
	Entity     string `json:"entity"`
	ExternalID string `json:"external_id"`
	// Revision rises with every change of the entity and is never used for two contents: the greatest one
	// wins, an older one is `stale`, and the same one with other content is a `conflict`.
	Revision        int64     `json:"revision"`
	Operation       string    `json:"operation,omitempty"`
	SourceUpdatedAt time.Time `json:"source_updated_at,omitzero"`
	// Document is the entity in the form of the OpenAPI document; a delete has none.
	Document any `json:"document,omitempty"`
	// Raw is the entity in the shop's own form. It is archived exactly as sent, for people.
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
	Duplicate   = "duplicate"   // this revision with this content is stored already
	Stale       = "stale"       // a newer revision is stored
	Conflict    = "conflict"    // this revision is stored with other content: the connector counted wrongly
	Quarantined = "quarantined" // archived, but the document breaks a rule; the revision is still free
	Rejected    = "rejected"    // not even archived: no external_id, entity or revision
)

// Settled reports whether Storefront has the entity's present state, so that nothing needs to be mended.
func (r Result) Settled() bool {
	return r.Status == Accepted || r.Status == Duplicate || r.Status == Stale
}
