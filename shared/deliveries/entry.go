package deliveries

import (
	"hash/fnv"

	"storefront.internal/shared/ident"
)

// Kind is what a delivery carries: it decides the engine's call and the body's form (contract, section 4).
type Kind uint8

// The kinds, as the database holds them.
const (
	Interaction Kind = 1
	Envelope    Kind = 2
)

// String names the kind for metrics and logs.
func (k Kind) String() string {
	switch k {
	case Interaction:
		return "interaction"
	case Envelope:
		return "envelope"
	default:
		return "unknown"
	}
}

// laneCount is how many lanes a connection has per kind; asideBase is added to a lane's number for what of it must be
// retried alone.
const (
	laneCount = 8
	asideBase = 8
)

// Entry is one delivery as it is enqueued.
type Entry struct {
	Kind         Kind
	ConnectionID ident.ConnectionID
	// LaneKey is what order is kept for: the Decision's id, or the entity.
	LaneKey string
	// ID is the signal's id or the observation's, for the list of the dead.
	ID string
	// Body is the JSON object that goes to the engine, byte for byte: an interaction of contract, section 4, or a whole
	// CloudEvent. It may alias a buffer only until Enqueue returns.
	Body []byte
	// Awaits is the Decision whose engine_ids are not known yet; "" freezes the body as it is. An interaction that
	// awaits gets the member engine_ids appended when it is first leased.
	Awaits string
	// Traceparent is of the request that brought it, in W3C form; "" without tracing. It is not delivered.
	Traceparent string
}

// laneOf is stable over releases: a Decision's deliveries must meet in one lane for as long as one of them waits.
func laneOf(key string) int16 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(key))
	return int16(h.Sum64() % laneCount)
}
