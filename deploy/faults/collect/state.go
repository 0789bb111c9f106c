// Package collect reads the state of an idle deployment after a fault run: PostgreSQL in one snapshot, the
// topics from offset 0, the requests that the engine received, the queue view, the metrics and the provider's
// entities. It changes nothing; package check compares the state with the history.
package collect

import "time"

// State is the state of a deployment.
type State struct {
	Drain time.Duration // time until the deployment was idle

	Signals []Signal
	Ledger  map[string]int // by connection: stored signals that are in the ledger, each counted once
	Lines   []CartLine
	Parked  []ParkedSignal
	Topic   []TopicSignal // one for each signal of each record
	Missing int64         // records that Kafka had already deleted
	Lag     map[string]int64
	// LedgerOnly is the number of rows of the ledger that belong to no stored signal.
	LedgerOnly int

	Engine  Engine
	Stuck   []Stuck
	Pending []Delivery
	Dead    []Delivery
	Queue   []QueueCounts // by connection

	Observations     []Observation
	Entities         []Entity
	Aggregates       []Aggregate
	Cached           []Aggregate // in Redis
	Deadlocks        int64       // that PostgreSQL resolved
	ProviderEntities []ProviderEntity

	Metrics map[string]map[string]float64 // by process: samples by name with labels
}

// Signal is a stored signal. Instants are Unix microseconds.
type Signal struct {
	Connection, ID, Type, Decision, Item, Variant, Visitor string
	Quantity                                               *int
	Index                                                  int
	Received, Occurred                                     int64
}

// CartLine is a cart line.
type CartLine struct {
	Connection, Decision, Item, Variant string
	Quantity, Revision                  int64
}

// ParkedSignal is a signal that the sink could not store.
type ParkedSignal struct{ Connection, Signal, Reason, SQLState string }

// TopicSignal is one signal of a record in Kafka.
type TopicSignal struct {
	Connection, ID, Visitor, RecordID string
	Partition                         int
	Offset                            int64
}

// Engine is what the engine received.
type Engine struct {
	Receipts      []Receipt
	Events        []Envelope
	SnapshotReads []SnapshotRead
	Unauthorized  []Unauthorized
}

// Receipt is an interaction that the engine received, with the digest of its bytes.
type Receipt struct {
	Connection, ID, Visitor, Decision string
	Result                            string // created, exists, rejected
	Digest                            [16]byte
	CartLine                          *CartLine
}

// Envelope is an event about an entity.
type Envelope struct {
	Observation, Connection, Entity, External string
	Revision                                  int64
}

// SnapshotRead is the engine's result of reading a snapshot.
type SnapshotRead struct{ Observation, Connection, Result, Detail string }

// Unauthorized is a request that the engine answered 401, with a digest of its credential. Delivery is true
// for requests of a relay.
type Unauthorized struct {
	At         time.Time
	Credential string
	Delivery   bool
}

// Delivery is a pending delivery or a dead letter. Kind is interaction or envelope.
type Delivery struct{ Connection, Kind, ID string }

// QueueCounts are the numbers of a connection's interactions in the queue from three sources.
type QueueCounts struct {
	Connection                             string
	Pending, Unconfirmed, Dead             int64 // the rows
	Counted, CountedUnconfirmed            int64 // the counts with their deltas, in the same snapshot
	ViewPending, ViewDead, ViewUnconfirmed int64 // the queue view
}

// Observation is an archived observation. Raw is the SHA-256 in hex of the bytes that were sent as `raw`, or
// of the whole body of a provider's connection.
type Observation struct {
	ID, Connection, Entity, External, Operation, State, Raw string
	Revision                                                int64
	Redacted                                                *time.Time
}

// Entity is an entity with its applied revision.
type Entity struct {
	Connection, Entity, External, Operation, Observation string
	Revision                                             int64
	Custom                                               bool
}

// Aggregate is an item as edges serve it.
type Aggregate struct {
	Connection, Item string
	Revision         int64
	Deleted          bool
}

// ProviderEntity compares the digests of an entity as it is applied and as its provider has it; "" means
// absent.
type ProviderEntity struct{ Connection, Entity, External, Applied, Provider string }
