package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"storefront.internal/control/internal/ingest"
	"storefront.internal/control/internal/observation"
	"storefront.internal/shared/crashpoint"
	"storefront.internal/shared/ident"
)

// The mark is read in a statement that ends before the fetch begins, and so is the number taken.
const beginFetch = `
SELECT nextval('control.fetch_seq'), coalesce(e.dirty_seq, 0), e.fetched_at, now()
FROM (VALUES (1)) AS one
LEFT JOIN control.entities e ON e.connection_id = $1 AND e.entity = $2 AND e.external_id = $3`

// Begin implements ingest.Store.
func (c *Catalog) Begin(ctx context.Context, conn ident.ConnectionID, key observation.Key) (b ingest.Begun, err error) {
	var last *time.Time
	err = c.pool.QueryRow(ctx, beginFetch, conn, key.Entity, key.ExternalID).Scan(&b.Number, &b.Mark, &last, &b.Now)
	if last != nil {
		b.Last = *last
	}
	return b, Translate("begin fetch", err)
}

const nextFetch = `SELECT nextval('control.fetch_seq')`

// NextFetch numbers a fetch of many entities.
func (c *Catalog) NextFetch(ctx context.Context) (number int64, err error) {
	err = c.pool.QueryRow(ctx, nextFetch).Scan(&number)
	return number, Translate("number fetch", err)
}

const (
	lockMark = `
SELECT dirty_seq
FROM control.entities
WHERE connection_id = $1 AND entity = $2 AND external_id = $3
FOR NO KEY UPDATE`

	settleMark = `
UPDATE control.entities
SET clean_seq = $4, fetched_at = clock_timestamp()
WHERE connection_id = $1 AND entity = $2 AND external_id = $3`
)

// Refresh implements ingest.Store. The entity's row is locked first, so a notification either moved the mark before, or
// waits until the job is completed and inserts another one.
func (c *Catalog) Refresh(ctx context.Context, b *observation.Batch, key observation.Key, mark int64) (outcomes []observation.Outcome, settled bool, err error) {
	err = c.inTx(ctx, func(tx pgx.Tx) error {
		var now int64
		err := tx.QueryRow(ctx, lockMark, b.Source.ConnectionID, key.Entity, key.ExternalID).Scan(&now)
		if err != nil && !errors.Is(err, pgx.ErrNoRows) {
			return err
		}
		settled = now == mark
		if outcomes, err = c.apply(ctx, tx, b); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, settleMark, b.Source.ConnectionID, key.Entity, key.ExternalID, mark); err != nil || !settled {
			return err
		}
		err = c.jobs.CompleteTx(ctx, tx)
		crashpoint.Hit(crashpoint.FetchBeforeCommit)
		return err
	})
	return outcomes, settled && err == nil, Translate("apply fetch", err)
}

// RequestCheck implements ingest.Store.
func (c *Catalog) RequestCheck(ctx context.Context, conn ident.ConnectionID) error {
	err := c.inTx(ctx, func(tx pgx.Tx) error { return c.jobs.EnqueueShopCheck(ctx, tx, conn, false) })
	return Translate("request check of a shop", err)
}
