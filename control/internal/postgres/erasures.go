package postgres

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"storefront.internal/shared/ident"
	"storefront.internal/shared/pg"
	"storefront.internal/shared/signal"
)

// upsertErasure reopens an earlier erasure of the subject; a relay that works on it then does not complete
// it. The id is passed to both branches, since control's role may not read it from the row.
const upsertErasure = `
INSERT INTO relay.erasures AS e (connection_id, subject, digest, subject_id)
VALUES ($1, $2, $3, $4)
ON CONFLICT (connection_id, subject, digest) DO UPDATE
SET subject_id = $4, erased_at = greatest(e.erased_at, excluded.erased_at), completed_at = NULL`

// EraseVisitor asks the relay to erase the data of a visitor. It returns not_found for a connection that does
// not exist.
func (p *Privacy) EraseVisitor(ctx context.Context, c ident.ConnectionID, v ident.VisitorID) error {
	err := pg.InTx(ctx, p.pool, func(tx pgx.Tx) error {
		if err := connectionExists(ctx, tx, c); err != nil {
			return err
		}
		return requestErasure(ctx, tx, c, signal.VisitorSubject, string(v))
	})
	return Translate("request erasure", err)
}

// requestErasure asks the relay to erase subjects of a connection, in the caller's transaction.
func requestErasure(ctx context.Context, tx pgx.Tx, c ident.ConnectionID, s signal.Subject,
	ids ...string) error {
	out := &pgx.Batch{}
	for _, id := range slices.Compact(slices.Sorted(slices.Values(ids))) {
		out.Queue(upsertErasure, c, s, pgtype.UUID{Bytes: signal.ErasureDigest(c, s, id), Valid: true}, id)
	}
	return tx.SendBatch(ctx, out).Close()
}
