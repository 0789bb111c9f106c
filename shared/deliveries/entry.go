package deliveries

import (
	"hash/fnv"

	"storefront.internal/shared/ident"
)

// Kind is what a delivery carries. It decides the engine's call and the form of the body.
type Kind uint8

// The kinds, as stored.
const (
	Interaction Kind = 1
	Envelope    Kind = 2
)

// String names the kind in metrics and logs.
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

// ParseKind returns the kind with the name that String gives.
func ParseKind(name string) (k Kind, ok bool) {
	for _, k := range []Kind{Interaction, Envelope} {
		if k.String() == name {
			return k, true
		}
	}
	return 0, false
}

// ValidID reports whether an id has the form of the kind's: that of an observation, or else of a signal.
func (k Kind) ValidID(id string) bool {
	if k == Envelope {
		return ident.Valid(ident.Observation, id)
	}
	return ident.Valid(ident.Signal, id)
}

const (
	laneCount     = 8 // lanes that a connection has per kind
	retryLaneBase = 8 // lane n has the retry lane n + retryLaneBase
	topLane       = laneCount*2 - 1
)

// Entry is a delivery to enqueue.
type Entry struct {
	Kind         Kind
	ConnectionID ident.ConnectionID
	// LaneKey is what order is kept for: the Decision's id, or the entity.
	LaneKey string
	// ID is the id of the signal or of the observation, for the list of dead letters.
	ID string
	// Body is the JSON object that goes to the engine, byte for byte: schema Interaction of
	// engine.openapi.yaml, or a whole CloudEvent. Enqueue does not keep it.
	Body []byte
	// Awaits is the Decision whose engine_ids are not known yet. Such an interaction gets the member
	// engine_ids when it is first leased. "" freezes the body as it is.
	Awaits string
	// Traceparent is the W3C traceparent of the request that brought it; "" without tracing. It is not
	// delivered.
	Traceparent string
}

// laneOf must not change between releases: all deliveries of a Decision must meet in one lane.
func laneOf(key string) int16 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(key))
	return int16(h.Sum64() % laneCount)
}
