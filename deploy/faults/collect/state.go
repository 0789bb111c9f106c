// Package collect owns the reading of a deployment after a fault run, when everything was healed and is quiet: PostgreSQL in one
// snapshot, the topics from offset 0, what the engine received, control's view of the queue, the metrics, and the fake
// provider's truth. It changes nothing, and refuses to judge: package check does, and needs nothing but a State.
package collect

import "time"

// State is what a deployment holds.
type State struct {
	Drain time.Duration // how long Quiet took, 0 when it was not asked

	Signals []Signal
	Ledger  map[string]int // rows by connection
	Lines   []Line
	Parked  []Parked
	Topic   []Record // signals in Kafka, one per element of a record
	Lost    int64    // records that the topic no longer held when it was read
	Lag     map[string]int64

	Engine  Engine
	Pending []Delivery
	Dead    []Delivery
	Queue   []Slice // by connection: counted anew, and as the view says

	Observations []Observation
	Entities     []Entity
	Aggregates   []Aggregate
	Cached       []Aggregate // the items that Redis holds
	Deadlocks    int64       // that PostgreSQL ended since its statistics began
	Truth        []Truth

	Metrics map[string]map[string]float64 // by process: samples by name with labels, as the process wrote them
}

// Signal is a stored signal. Instants are Unix microseconds.
type Signal struct {
	Connection, ID, Type, Decision, Item, Variant, Visitor string
	Quantity                                               *int
	Index                                                  int
	Received, Occurred                                     int64
}

// Line is a cart line.
type Line struct {
	Connection, Decision, Item, Variant string
	Quantity, Revision                  int64
}

// Parked is what the sink could not store.
type Parked struct{ Connection, Signal, Reason, SQLState string }

// Record is one signal of a record in Kafka.
type Record struct {
	Connection, ID, Visitor, RecordID string
	Partition                         int
	Offset                            int64
}

// Engine is what the engine received.
type Engine struct {
	Receipts []Receipt
	Events   []Envelope
	Readings []Reading
	Refusals []Refusal
}

// Receipt is one interaction as it arrived: Digest is of its bytes.
type Receipt struct {
	Connection, ID, Visitor, Decision string
	Result                            string // created, exists, rejected
	Digest                            [16]byte
	Line                              *Line
}

// Envelope is one event about an entity.
type Envelope struct {
	Observation, Connection, Entity, External string
	Revision                                  int64
}

// Reading is what came of the engine's reading of a snapshot.
type Reading struct{ Observation, Connection, Result, Detail string }

// Refusal is a request that the engine answered 401; Credential is a digest of what it carried. Delivery says that a relay made it.
type Refusal struct {
	At         time.Time
	Credential string
	Delivery   bool
}

// Delivery is a row of the queue, or of the dead. Kind is interaction or envelope.
type Delivery struct{ Connection, Kind, ID string }

// Slice is one connection's figures of the queue of interactions, from three places.
type Slice struct {
	Connection                      string
	Pending, Unconfirmed, Dead      int64 // the rows themselves
	Counted, CountedUnconfirmed     int64 // counts and open deltas, in the same snapshot
	Shown, ShownDead, ShownDoubtful int64 // operation 9
}

// Observation is a row of the archive. Raw is the SHA-256, in hex, of the bytes that were sent as `raw`; of a provider's
// connection of the whole body.
type Observation struct {
	ID, Connection, Entity, External, Operation, State, Raw string
	Revision                                                int64
}

// Entity is an entity's applied revision.
type Entity struct {
	Connection, Entity, External, Operation, Observation string
	Revision                                             int64
	Custom                                               bool
}

// Aggregate is what operation 2 serves.
type Aggregate struct {
	Connection, Item string
	Revision         int64
	Deleted          bool
}

// Truth compares what is applied of an entity with what its provider has: digests of equal JSON are equal, empty is absent.
type Truth struct{ Connection, Entity, External, Have, Want string }
