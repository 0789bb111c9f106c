// Package postgres owns engine-relay's SQL for schema relay: the transaction of the sink, step by step, the
// erasure of personal data, and the upkeep of the tables. It implements the stores of packages sink, erase
// and upkeep, which decide what is new, how a cart line changes and what is parked. Errors keep PostgreSQL's
// error, since its class decides what the sink does next.
package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"storefront.internal/engine-relay/internal/sink"
	"storefront.internal/shared/deliveries"
	"storefront.internal/shared/pg"
)

// Store implements sink.Store and upkeep.Store.
type Store struct{ pool *pgxpool.Pool }

// New returns a Store.
func New(pool *pgxpool.Pool) *Store { return &Store{pool: pool} }

// InTx implements sink.Store.
func (s *Store) InTx(ctx context.Context, fn func(sink.Tx) error) error {
	return pg.InTx(ctx, pg.CustomPlans(s.pool), func(t pgx.Tx) error { return fn(&tx{t}) })
}

// tx implements sink.Tx.
type tx struct{ pgx.Tx }

// A signal is new when neither form of the ledger has its digest (ADR 34). Rows that the migration to
// ledger_digests found in relay.ledger are visible to every snapshot since. Each later row of relay.ledger,
// which a relay of the previous release inserts, is in ledger_digests too, so its unique index decides.
// An empty relay.ledger is asked once; OFFSET 0 keeps the planner from reading all of a filled one.
const insertLedger = `
INSERT INTO relay.ledger_digests (digest)
SELECT digest
FROM unnest($1::text[], $2::uuid[]) WITH ORDINALITY AS k (connection_id, digest, n)
WHERE NOT (EXISTS (SELECT FROM relay.ledger) AND EXISTS (
    SELECT FROM relay.ledger AS l WHERE l.connection_id = k.connection_id AND l.digest = k.digest OFFSET 0))
ORDER BY n
ON CONFLICT DO NOTHING
RETURNING digest`

// InsertLedger waits for a concurrent transaction that inserts the same key, and then knows which one was
// first.
func (t *tx) InsertLedger(ctx context.Context, keys []sink.LedgerKey) (map[[16]byte]struct{}, error) {
	inserted := make(map[[16]byte]struct{}, len(keys))
	rows, err := t.Query(ctx, insertLedger,
		pg.Column(len(keys), func(i int) string { return string(keys[i].ConnectionID) }),
		pg.Column(len(keys), func(i int) pgtype.UUID { return uuidOf(keys[i].Digest) }))
	if err == nil {
		var digest pgtype.UUID
		_, err = pgx.ForEachRow(rows, []any{&digest}, func() error {
			inserted[digest.Bytes] = struct{}{}
			return nil
		})
	}
	if err != nil {
		return nil, fmt.Errorf("insert %d signals into the ledger: %w", len(keys), err)
	}
	return inserted, nil
}

func uuidOf(b [16]byte) pgtype.UUID { return pgtype.UUID{Bytes: b, Valid: true} }

// Enqueue implements sink.Tx.
func (t *tx) Enqueue(ctx context.Context, entries []deliveries.Entry) error {
	return deliveries.Enqueue(ctx, t.Tx, entries)
}
