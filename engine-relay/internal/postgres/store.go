// Package postgres owns engine-relay's SQL for schema relay: one transaction of the sink, step by step, and the upkeep
// of what lies there. It refuses decisions: what is new, what a line becomes and what is parked is package record's and
// package cart's. Errors leave it as PostgreSQL gave them, since their class decides what the sink does next.
package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"storefront.internal/engine-relay/internal/record"
	"storefront.internal/shared/deliveries"
	"storefront.internal/shared/pg"
)

// Store is the sink's store over a pool.
type Store struct{ pool *pgxpool.Pool }

// New returns a Store.
func New(pool *pgxpool.Pool) *Store { return &Store{pool: pool} }

// InTx runs fn in one transaction and commits it; package record says what an error means.
func (s *Store) InTx(ctx context.Context, fn func(record.Tx) error) error {
	return pg.InTx(ctx, fresh{s.pool}, func(t pgx.Tx) error { return fn(&tx{t}) })
}

// fresh begins transactions whose statements are planned anew each time. A prepared statement's generic plan, made while
// a table was small, reads all of it for as long as nobody analyzes it; planning costs nothing beside thousands of rows.
type fresh struct{ pool *pgxpool.Pool }

func (f fresh) BeginTx(ctx context.Context, opts pgx.TxOptions) (pgx.Tx, error) {
	opts.BeginQuery = "BEGIN; SET LOCAL plan_cache_mode = force_custom_plan"
	return f.pool.BeginTx(ctx, opts)
}

// tx is one transaction of the sink.
type tx struct{ pgx.Tx }

const enter = `
INSERT INTO relay.ledger (connection_id, digest)
SELECT connection_id, digest
FROM unnest($1::text[], $2::uuid[]) WITH ORDINALITY AS k (connection_id, digest, n)
ORDER BY n
ON CONFLICT DO NOTHING
RETURNING digest`

// Enter waits for a concurrent transaction that enters the same key, and then knows whether it was the first.
func (t *tx) Enter(ctx context.Context, keys []record.LedgerKey) (map[[16]byte]struct{}, error) {
	connections := make([]string, len(keys))
	digests := make([]pgtype.UUID, len(keys))
	for i, k := range keys {
		connections[i], digests[i] = string(k.ConnectionID), pgtype.UUID{Bytes: k.Digest, Valid: true}
	}
	rows, err := t.Query(ctx, enter, connections, digests)
	if err != nil {
		return nil, fmt.Errorf("enter %d signals: %w", len(keys), err)
	}
	entered := make(map[[16]byte]struct{}, len(keys))
	var digest pgtype.UUID
	if _, err := pgx.ForEachRow(rows, []any{&digest}, func() error {
		entered[digest.Bytes] = struct{}{}
		return nil
	}); err != nil {
		return nil, fmt.Errorf("enter %d signals: %w", len(keys), err)
	}
	return entered, nil
}

// Enqueue puts the interactions into the queue to the engine.
func (t *tx) Enqueue(ctx context.Context, entries []deliveries.Entry) error {
	return deliveries.Enqueue(ctx, t.Tx, entries)
}

const park = `
INSERT INTO relay.parked (topic, topic_partition, record_offset, signal_index, connection_id, signal_id, reason, sqlstate, bytes)
VALUES ($1, $2, $3, $4, nullif($5, ''), nullif($6, ''), $7, $8, $9)
ON CONFLICT ON CONSTRAINT parked_once DO NOTHING`

// Park keeps what cannot be stored. The same bytes from the same place are kept once.
func (t *tx) Park(ctx context.Context, parked []record.Parked) error {
	batch := &pgx.Batch{}
	for i := range parked {
		p := &parked[i]
		batch.Queue(park, p.Topic, p.Partition, p.Offset, p.Index, p.ConnectionID, p.SignalID, p.Reason, p.SQLState,
			append([]byte{}, p.Bytes...)) // a record without a value is no NULL
	}
	if err := t.SendBatch(ctx, batch).Close(); err != nil {
		return fmt.Errorf("park %d: %w", len(parked), err)
	}
	return nil
}
