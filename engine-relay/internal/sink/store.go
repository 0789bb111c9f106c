package sink

import (
	"context"
	"time"

	"storefront.internal/engine-relay/internal/cart"
	"storefront.internal/shared/deliveries"
	"storefront.internal/shared/ident"
	"storefront.internal/shared/signal"
)

// Store opens transactions. InTx commits when fn returns nil. An error of the commit comes back unchanged and
// may mean that the outcome is unknown; an error of fn comes back unchanged after the rollback.
type Store interface {
	InTx(ctx context.Context, fn func(Tx) error) error
}

// Tx is what the sink does inside one transaction. Its methods are called in this order and with keys in
// ascending order; that is what keeps two sinks from a deadlock.
type Tx interface {
	// Erasures returns the erasures whose instant is later than since. An erasure that it does not return yet
	// waits for the end of this transaction before it searches what is stored.
	Erasures(ctx context.Context, since time.Time) (Erasures, error)
	// RequestErasures stores requests to erase visitors.
	RequestErasures(ctx context.Context, visitors []VisitorErasure) error
	// SaveDecisions stores the Decisions that are not stored yet, flags the foreign items of signals that
	// came before them, and returns how many Decisions were new.
	SaveDecisions(ctx context.Context, decisions []*signal.Decision) (int, error)
	// InsertLedger inserts the keys into the ledger and returns the digests of those that were new.
	InsertLedger(ctx context.Context, keys []LedgerKey) (map[[16]byte]struct{}, error)
	// Served returns the content of those Decisions that are stored.
	Served(ctx context.Context, keys []DecisionKey) (map[DecisionKey]Served, error)
	SaveSignals(ctx context.Context, signals []Signal) error
	SaveAudits(ctx context.Context, audits []Audit) error
	// Lines creates the lines that are missing, locks all until the end of the transaction, and returns them
	// in the order of the keys.
	Lines(ctx context.Context, keys []LineKey) ([]*cart.Line, error)
	SaveLines(ctx context.Context, keys []LineKey, lines []*cart.Line) error
	Enqueue(ctx context.Context, entries []deliveries.Entry) error
	// CompleteReplay says that a parked record is stored. FailReplay says that it is refused again.
	CompleteReplay(ctx context.Context, parkedID int64) error
	FailReplay(ctx context.Context, parkedID int64, reason, sqlState string) error
	Park(ctx context.Context, parked []Parked) error
	// MarkStored adds offsets to those that are stored of their partitions, if the assignment began with
	// them, and returns how far these partitions are stored.
	MarkStored(ctx context.Context, assignment string, spans []Span) ([]Position, error)
}

// LedgerKey identifies a signal.
type LedgerKey struct {
	ConnectionID ident.ConnectionID
	Digest       [16]byte
}

// DecisionKey identifies a Decision.
type DecisionKey struct {
	ConnectionID ident.ConnectionID
	DecisionID   ident.DecisionID
}

// Served is the content of a Decision: its items, and the engine's own ids (nil for a fallback).
type Served struct {
	Items     map[ident.ItemID]struct{}
	EngineIDs []byte
}

// LineKey identifies a cart line. VariantID is empty when the line has none.
type LineKey struct {
	ConnectionID ident.ConnectionID
	DecisionID   ident.DecisionID
	ItemID       ident.ItemID
	VariantID    ident.VariantID
}

// Signal is a new signal with the facts of its request. ForeignItem says whether the Decision lacks the item;
// it is nil while the Decision is not stored.
type Signal struct {
	*signal.Signal
	ConnectionID ident.ConnectionID
	StoreID      ident.StoreID
	RecordID     [16]byte
	Index        int
	ReceivedAt   time.Time
	Crawler      bool
	ForeignItem  *bool
}

// Audit is what is kept of a request that had at least one new signal. Clients is a JSON object by signal id,
// nil when no new signal has a client.
type Audit struct {
	signal.Audit
	ConnectionID ident.ConnectionID
	RecordID     [16]byte
	ReceivedAt   time.Time
	Clients      []byte
}
