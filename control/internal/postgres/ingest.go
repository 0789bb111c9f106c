package postgres

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"storefront.internal/control/internal/ingest"
	"storefront.internal/control/internal/observation"
	"storefront.internal/shared/failpoint"
	"storefront.internal/shared/ident"
)

// The mark is read, and the number is taken, in a statement that ends before the fetch begins.
const beginFetch = `
SELECT nextval('control.fetch_seq'), coalesce(e.dirty_seq, 0), e.fetched_at, now()
FROM (VALUES (1)) AS one
LEFT JOIN control.entities e ON e.connection_id = $1 AND e.entity = $2 AND e.external_id = $3`

// BeginFetch implements ingest.Store.
func (c *Catalog) BeginFetch(ctx context.Context, conn ident.ConnectionID,
	key observation.Key) (b ingest.FetchStart, err error) {
	var last *time.Time
	err = c.pool.QueryRow(ctx, beginFetch, conn, key.Entity, key.ExternalID).Scan(&b.FetchSeq,
		&b.DirtySeq, &last, &b.Now)
	if last != nil {
		b.LastFetchedAt = *last
	}
	return b, Translate("begin fetch", err)
}

const nextFetch = `SELECT nextval('control.fetch_seq')`

// NextFetchSeq implements bootstrap.Store.
func (c *Catalog) NextFetchSeq(ctx context.Context) (number int64, err error) {
	err = c.pool.QueryRow(ctx, nextFetch).Scan(&number)
	return number, Translate("number fetch", err)
}

const (
	lockDirtySeq = `
SELECT dirty_seq
FROM control.entities
WHERE connection_id = $1 AND entity = $2 AND external_id = $3
FOR NO KEY UPDATE`

	setCleanSeq = `
UPDATE control.entities
SET clean_seq = $4, fetched_at = statement_timestamp()
WHERE connection_id = $1 AND entity = $2 AND external_id = $3`
)

// ApplyFetch implements ingest.Store. It locks the entity's row first: a webhook either raised the mark
// before, or waits until this transaction completed the job and then inserts another one.
func (c *Catalog) ApplyFetch(ctx context.Context, b *observation.Batch, key observation.Key,
	dirtySeq int64) (outcomes []observation.Outcome, completed bool, err error) {
	err = c.inTx(ctx, func(tx pgx.Tx) error {
		var now int64
		err := tx.QueryRow(ctx, lockDirtySeq, b.Source.ConnectionID, key.Entity, key.ExternalID).Scan(&now)
		if err != nil && !errors.Is(err, pgx.ErrNoRows) {
			return err
		}
		if outcomes, err = c.apply(ctx, tx, b); err != nil {
			return err
		}
		completed = now == dirtySeq &&
			!slices.ContainsFunc(outcomes, func(o observation.Outcome) bool { return o.FetchAgain })
		if _, err := tx.Exec(ctx, setCleanSeq, b.Source.ConnectionID, key.Entity, key.ExternalID,
			dirtySeq); err != nil || !completed {
			return err
		}
		err = c.jobs.CompleteTx(ctx, tx)
		failpoint.Hit(failpoint.FetchBeforeCommit)
		return err
	})
	return outcomes, completed && err == nil, Translate("apply fetch", err)
}

// markQuarantined is for entities whose mark the release before, which knew none, did not set.
const markQuarantined = `
UPDATE control.entities
SET quarantined_id = $4
WHERE connection_id = $1 AND entity = $2 AND external_id = $3 AND quarantined_id = ''`

// RequestFetch implements observation.Store.
func (c *Catalog) RequestFetch(ctx context.Context, conn ident.ConnectionID, key observation.Key,
	id ident.ObservationID) error {
	err := c.inTx(ctx, func(tx pgx.Tx) error {
		var redacted bool
		err := tx.QueryRow(ctx, markEntityDirty, conn, key.Entity, key.ExternalID).Scan(&redacted)
		if err != nil || redacted {
			return err
		}
		if _, err := tx.Exec(ctx, markQuarantined, conn, key.Entity, key.ExternalID, id); err != nil {
			return err
		}
		return c.jobs.EnqueueRefresh(ctx, tx, conn, key)
	})
	return Translate("request fetch", err)
}

// EnqueueShopCheck implements ingest.Store.
func (c *Catalog) EnqueueShopCheck(ctx context.Context, conn ident.ConnectionID) error {
	err := c.inTx(ctx, func(tx pgx.Tx) error { return c.jobs.EnqueueShopCheck(ctx, tx, false, conn) })
	return Translate("request check of a shop", err)
}
