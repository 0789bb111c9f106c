package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/semaphore"

	"storefront.internal/edge/internal/intake"
	"storefront.internal/shared/ident"
	"storefront.internal/shared/signal"
)

// Ledger implements intake.Ledger over the relay's ledger of stored signals.
type Ledger struct {
	pool  *pgxpool.Pool
	slots *semaphore.Weighted
}

var _ intake.Ledger = (*Ledger)(nil)

// NewLedger returns the reader of the ledger.
func NewLedger(pool *pgxpool.Pool) *Ledger {
	return &Ledger{pool: pool, slots: semaphore.NewWeighted(maxLookups)}
}

// Known implements intake.Ledger: one query for the batch, of both forms of the ledger (ADR 34).
func (l *Ledger) Known(ctx context.Context, c ident.ConnectionID, ids []ident.SignalID) ([]bool, error) {
	if err := l.slots.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	defer l.slots.Release(1)
	digests := make([][16]byte, len(ids))
	for i, id := range ids {
		digests[i] = signal.LedgerDigest(c, id)
	}
	const query = `
		SELECT digest FROM relay.ledger_digests WHERE digest = ANY($2::uuid[])
		UNION ALL
		SELECT digest FROM relay.ledger WHERE connection_id = $1 AND digest = ANY($2::uuid[])`
	rows, err := l.pool.Query(ctx, query, c, digests)
	if err != nil {
		return nil, fmt.Errorf("ask ledger: %w", err)
	}
	stored, err := pgx.CollectRows(rows, pgx.RowTo[[16]byte])
	if err != nil {
		return nil, fmt.Errorf("ask ledger: %w", err)
	}
	is := make(map[[16]byte]bool, len(stored))
	for _, d := range stored {
		is[d] = true
	}
	known := make([]bool, len(ids))
	for i := range known {
		known[i] = is[digests[i]]
	}
	return known, nil
}

// RecentlyStored implements intake.Ledger, by the clock of PostgreSQL, which also set the times.
func (l *Ledger) RecentlyStored(ctx context.Context, within time.Duration) (recent bool, err error) {
	if err := l.slots.Acquire(ctx, 1); err != nil {
		return false, err
	}
	defer l.slots.Release(1)
	const query = `
		SELECT EXISTS (SELECT FROM relay.audit WHERE stored_at > now() - make_interval(secs => $1))`
	if err := l.pool.QueryRow(ctx, query, within.Seconds()).Scan(&recent); err != nil {
		return false, fmt.Errorf("ask for recent signals: %w", err)
	}
	return recent, nil
}
