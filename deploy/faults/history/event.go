// Package history owns the record of a fault run: what clients sent, what they were told and when, and which faults were injected
// meanwhile, as JSON Lines on one monotonic clock. It judges nothing and knows no service; whatever is not written here did
// not happen, as far as the checker is concerned.
package history

import (
	"crypto/sha256"
	"encoding/hex"
)

// Kind is the end of a call, or its begin. What a call left behind is known for OK and Fail only.
type Kind string

// An Invoke is written before the first byte is sent. OK: a 2xx whose body was read whole. Fail: certainly nothing was done (a 4xx,
// a refused connect, a 503 that says that the batch was refused before it was handed to Kafka). Info: anything may have been
// done (a timeout, a reset, a 500, any other 503).
const (
	Invoke Kind = "invoke"
	OK     Kind = "ok"
	Fail   Kind = "fail"
	Info   Kind = "info"
)

// Op is what a call asks for.
type Op string

// The operations of a load.
const (
	Signals   Op = "signals"    // operation 1
	Recommend Op = "recommend"  // E1
	Item      Op = "item"       // operation 2
	Observe   Op = "observe"    // operation 4
	Webhook   Op = "webhook"    // a change at the provider, or its notification
	KeyIssue  Op = "key_issue"  // operation 6
	KeyRevoke Op = "key_revoke" // E4
	Probe     Op = "probe"      // rude and forged calls; none may leave anything behind
)

// Event is one line: the begin of a call or its end. Which members count depends on the operation.
type Event struct {
	At         int64  `json:"at"`   // nanoseconds since the run's start
	Call       uint64 `json:"call"` // a begin and its end share it
	Kind       Kind   `json:"kind"`
	Op         Op     `json:"op"`
	Client     int    `json:"client"`
	Edge       string `json:"edge,omitempty"` // the name of the edge (or control) that was called
	Connection string `json:"connection,omitempty"`
	Key        string `json:"key,omitempty"` // api_key_id, never the secret

	Signals      []Sent     `json:"signals,omitempty"`      // begin of Signals
	Results      []Result   `json:"results,omitempty"`      // OK of Signals
	Observations []Observed `json:"observations,omitempty"` // begin of Observe
	Outcomes     []Outcome  `json:"outcomes,omitempty"`     // OK of Observe

	Status    int    `json:"status,omitempty"`
	Code      string `json:"code,omitempty"`
	RequestID string `json:"request_id,omitempty"`
	Error     string `json:"error,omitempty"`

	Item     string   `json:"item,omitempty"`     // Item: the item_id that was read
	Revision int64    `json:"revision,omitempty"` // OK of Item: its refresh_revision
	Decision string   `json:"decision,omitempty"` // OK of Recommend: what was minted
	Items    []string `json:"items,omitempty"`    // OK of Recommend: its items, in order
	External string   `json:"external,omitempty"` // Webhook: the entity at the provider
}

// Sent is one element of a batch as the client wrote it.
type Sent struct {
	ID         string `json:"id"`
	Type       string `json:"type,omitempty"`
	Decision   string `json:"decision,omitempty"`
	Item       string `json:"item,omitempty"`
	Variant    string `json:"variant,omitempty"`
	Quantity   *int   `json:"quantity,omitempty"`
	OccurredAt string `json:"occurred_at,omitempty"`
	Canary     string `json:"canary,omitempty"`    // travels as the tail of the visitor's id
	Malformed  bool   `json:"malformed,omitempty"` // the client made it wrong on purpose: it must be rejected
	Forgotten  bool   `json:"forgotten,omitempty"` // its visitor is erased later on: from then on its deliveries lack the visitor
	Foreign    bool   `json:"foreign,omitempty"`   // its Decision is not ours, or another connection's: unknown_decision is right
}

// Result is what the service said of one element.
type Result struct {
	Index  int    `json:"index"`
	ID     string `json:"signal_id,omitempty"`
	Status string `json:"status"`
	Reason string `json:"reason,omitempty"`
}

// Observed is one element that a custom connector delivered.
type Observed struct {
	Entity    string `json:"entity"`
	External  string `json:"external_id"`
	Operation string `json:"operation,omitempty"` // upsert when empty
	Revision  int64  `json:"revision"`
	Raw       string `json:"raw,omitempty"` // SHA-256 of the bytes of `raw`, in hex
}

// Outcome is what the service said of one observation.
type Outcome struct {
	Index       int    `json:"index"`
	Status      string `json:"status"`
	Observation string `json:"observation_id,omitempty"`
	EntityID    string `json:"entity_id,omitempty"`
	Reason      string `json:"reason,omitempty"`
}

// Fault is one injected fault, from its begin to the moment at which it was healed.
type Fault struct {
	At     int64  `json:"at"`
	Until  int64  `json:"until"`
	Kind   string `json:"fault"` // N1 … N15
	Detail string `json:"detail,omitempty"`
}

// Canary is what a signal carries as the tail of its visitor's id, so that bytes of another connection or signal are seen
// wherever they surface.
func Canary(connection, signal string) string {
	sum := sha256.Sum256([]byte(connection + "|" + signal))
	return hex.EncodeToString(sum[:12])
}
