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
    AND EXISTS (SELECT FROM unnest($3::bytea[]) AS pattern WHERE position(pattern IN bytes) > 0)
ORDER BY parked_id
LIMIT $4`

	updateParked = `UPDATE relay.parked SET bytes = $2 WHERE parked_id = $1`
)

// EraseParked implements erase.Store. Bytes that cannot be decoded but contain the connection and a pattern
// are emptied.
func (s *Erasures) EraseParked(
	ctx context.Context, c *erase.Claim, from int64, limit int,
) (next int64, err error) {
	erasures, patterns := c.Erasures(), patternsOf(c)
	err = pg.InTx(ctx, s.pool, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, pageOfParked, c.ConnectionID, from, patterns, limit)
		if err != nil {
			return err
		}
		out := &pgx.Batch{}
		var id int64
		var connection string
		var held []byte
		if _, err := pgx.ForEachRow(rows, []any{&id, &connection, &held}, func() error {
			next = id
			redacted, readable := erasures.RedactBytes(held)
			if !readable && (connection != "" || bytes.Contains(held, []byte(c.ConnectionID))) {
				redacted = []byte{}
			}
			if !bytes.Equal(redacted, held) {
				out.Queue(updateParked, id, redacted)
			}
			return nil
		}); err != nil || out.Len() == 0 {
			return err
		}
		return tx.SendBatch(ctx, out).Close()
	})
	if err != nil {
		return 0, fmt.Errorf("erase in parked records: %w", err)
	}
	return next, nil
}

// patternsOf are what parked bytes contain that may have something to redact.
func patternsOf(c *erase.Claim) [][]byte {
	if !c.WholeConnection.IsZero() {
		return [][]byte{[]byte(c.ConnectionID)}
	}
	var all [][]byte
	for _, v := range c.Visitors {
		all = append(all, []byte(v.ID))
	}
	for _, o := range c.Orders {
		all = append(all, []byte(o.ID))
	}
	return all
}
