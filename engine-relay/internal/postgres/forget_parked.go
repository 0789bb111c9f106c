package postgres

import (
	"bytes"
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"storefront.internal/engine-relay/internal/erase"
	"storefront.internal/shared/pg"
)

const (
	pageOfParked = `
SELECT parked_id, coalesce(connection_id, ''), bytes
FROM relay.parked
WHERE parked_id > $2 AND (connection_id = $1 OR connection_id IS NULL)
    AND EXISTS (SELECT FROM unnest($3::bytea[]) AS needle WHERE position(needle IN bytes) > 0)
ORDER BY parked_id
LIMIT $4`

	rewriteParked = `UPDATE relay.parked SET bytes = $2 WHERE parked_id = $1`
)

// Parked implements erase.Store. What cannot be read and names the connection and somebody to be forgotten goes whole.
func (s *Erasures) Parked(ctx context.Context, w *erase.Work, from int64, limit int) (next int64, err error) {
	erased, names := w.Erased(), names(w)
	err = pg.InTx(ctx, s.pool, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, pageOfParked, w.ConnectionID, from, names, limit)
		if err != nil {
			return err
		}
		out := &pgx.Batch{}
		var id int64
		var connection string
		var held []byte
		if _, err := pgx.ForEachRow(rows, []any{&id, &connection, &held}, func() error {
			next = id
			redacted, readable := erased.Redact(held)
			if !readable && (connection != "" || bytes.Contains(held, []byte(w.ConnectionID))) {
				redacted = []byte{}
			}
			if !bytes.Equal(redacted, held) {
				out.Queue(rewriteParked, id, redacted)
			}
			return nil
		}); err != nil || out.Len() == 0 {
			return err
		}
		return tx.SendBatch(ctx, out).Close()
	})
	if err != nil {
		return 0, fmt.Errorf("forget in what is parked: %w", err)
	}
	return next, nil
}

// names are what parked bytes hold that are to be looked at.
func names(w *erase.Work) [][]byte {
	if !w.Everybody.IsZero() {
		return [][]byte{[]byte(w.ConnectionID)}
	}
	var all [][]byte
	for _, v := range w.Visitors {
		all = append(all, []byte(v.ID))
	}
	for _, o := range w.Orders {
		all = append(all, []byte(o.ID))
	}
	return all
}
