package postgres

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"storefront.internal/shared/ident"
	"storefront.internal/shared/pg"
	"storefront.internal/shared/signal"
)

// Erasures is where the relay is asked to forget.
type Erasures struct{ pool *pgxpool.Pool }

// NewErasures returns Erasures.
func NewErasures(pool *pgxpool.Pool) *Erasures { return &Erasures{pool: pool} }

// askErasure opens what was erased before anew. A relay that works on the same subject does not complete it then. The id is
// written twice, as control may not read it.
const askErasure = `
INSERT INTO relay.erasures AS e (connection_id, subject, digest, subject_id)
VALUES ($1, $2, $3, $4)
ON CONFLICT (connection_id, subject, digest) DO UPDATE
SET subject_id = $4, erased_at = greatest(e.erased_at, excluded.erased_at), completed_at = NULL`

// EraseVisitor implements erasure.Store.
func (e *Erasures) EraseVisitor(ctx context.Context, c ident.ConnectionID, v ident.VisitorID) error {
	err := pg.InTx(ctx, e.pool, func(tx pgx.Tx) error {
		var exists bool
		if err := tx.QueryRow(ctx, connectionExists, c).Scan(&exists); err != nil {
			return err
		}
		if !exists {
			return notFound("connection")
		}
		return requestErasure(ctx, tx, c, signal.VisitorSubject, string(v))
	})
	return Translate("request erasure", err)
}

// requestErasure asks the relay to forget subjects of a connection, in the caller's transaction.
func requestErasure(ctx context.Context, tx pgx.Tx, c ident.ConnectionID, s signal.Subject, ids ...string) error {
	out := &pgx.Batch{}
	for _, id := range slices.Compact(slices.Sorted(slices.Values(ids))) {
		out.Queue(askErasure, c, s, pgtype.UUID{Bytes: signal.ErasureDigest(c, s, id), Valid: true}, id)
	}
	return tx.SendBatch(ctx, out).Close()
}
