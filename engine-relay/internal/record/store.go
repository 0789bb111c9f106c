package record

import (
	"context"
	"time"

	"storefront.internal/engine-relay/internal/cart"
	"storefront.internal/shared/deliveries"
	"storefront.internal/shared/ident"
	"storefront.internal/shared/signal"
)

// Store opens transactions. InTx commits when fn returns nil and returns the commit's error as it is: it may mean that
// the outcome is not known. fn's own error comes back unchanged, after a rollback.
type Store interface {
	InTx(ctx context.Context, fn func(Tx) error) error
}

// Tx is what the sink does inside one transaction. Methods are called in the order in which they stand here, and
// with keys in ascending order: that, and nothing else, keeps two sinks from a deadlock.
type Tx interface {
	// Erased returns what is to be forgotten of anything before an instant later than the given one. An erasure that it
	// does not return yet waits for this transaction to end before it looks for what lies stored.
	Erased(ctx context.Context, since time.Time) (Erased, error)
	// Forget asks for the erasure of visitors.
	Forget(ctx context.Context, visitors []Visitor) error
	// SaveDecisions stores the Decisions that are not there yet, marks the signals that came before them, and returns
	// how many were new.
	SaveDecisions(ctx context.Context, decisions []*signal.Decision) (int, error)
	// Enter writes the keys into the ledger and returns the digests of those that were not in it.
	Enter(ctx context.Context, keys []LedgerKey) (map[[16]byte]struct{}, error)
	// Served returns what the Decisions held, of those whose rows are there.
	Served(ctx context.Context, keys []DecisionKey) (map[DecisionKey]Served, error)
	SaveSignals(ctx context.Context, signals []Signal) error
	SaveAudits(ctx context.Context, audits []Audit) error
	// Lines returns the lines, made where they were missing, locked until the end, in the order of the keys.
	Lines(ctx context.Context, keys []LineKey) ([]*cart.Line, error)
	SaveLines(ctx context.Context, keys []LineKey, lines []*cart.Line) error
	Enqueue(ctx context.Context, entries []deliveries.Entry) error
	Park(ctx context.Context, parked []Parked) error
}

// LedgerKey names a signal once and for all.
type LedgerKey struct {
	ConnectionID ident.ConnectionID
	Digest       [16]byte
}

// DecisionKey names a Decision of a connection.
type DecisionKey struct {
	ConnectionID ident.ConnectionID
	DecisionID   ident.DecisionID
}

// Served is what a Decision held: its items, and the engine's own ids (nil for a fallback).
type Served struct {
	Items     map[ident.ItemID]struct{}
	EngineIDs []byte
}

// LineKey names a cart line. VariantID is empty when the line has none.
type LineKey struct {
	ConnectionID ident.ConnectionID
	DecisionID   ident.DecisionID
	ItemID       ident.ItemID
	VariantID    ident.VariantID
}

// Signal is a new signal with what its request says of it. ForeignItem is nil while the Decision is not known.
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

// Audit is what is kept of a request that brought at least one new signal. Clients is a JSON object by signal id, nil
// when no new signal carried one.
type Audit struct {
	signal.Audit
	ConnectionID ident.ConnectionID
	RecordID     [16]byte
	ReceivedAt   time.Time
	Clients      []byte
}
