package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"storefront.internal/control/internal/bootstrap"
	"storefront.internal/shared/catalog"
	"storefront.internal/shared/ident"
)

const selectMissing = `
SELECT external_id
FROM control.entities
WHERE connection_id = $1 AND entity = $2 AND external_id > $3 AND operation = 'upsert' AND fetch_seq < $4
ORDER BY external_id
LIMIT $5`

// Missing implements bootstrap.Store.
func (c *Bootstraps) Missing(ctx context.Context, conn ident.ConnectionID, e catalog.Entity, before int64,
	after string, limit int) ([]string, error) {
	return list(ctx, c.pool, "read missing entities", pgx.RowTo[string], selectMissing, conn, e,
		after, before, limit)
}

const selectUnfinishedRuns = `
SELECT r.bootstrap_run_id
FROM control.bootstrap_runs r
JOIN control.connections c ON c.connection_id = r.connection_id
WHERE r.state IN ('queued', 'running') AND c.disabled_at IS NULL`

// RequeueRuns gives each unfinished run its job, if it has none.
func (c *Bootstraps) RequeueRuns(ctx context.Context) error {
	err := c.inTx(ctx, func(tx pgx.Tx) error {
		rows, _ := tx.Query(ctx, selectUnfinishedRuns)
		ids, err := pgx.CollectRows(rows, pgx.RowTo[ident.RunID])
		if err != nil {
			return err
		}
		return c.jobs.EnqueueBootstrap(ctx, tx, ids...)
	})
	return Translate("requeue bootstrap runs", err)
}

// selectInstalled tells which shops are due for a bootstrap run, since a catch-up does not find deletions:
// those whose last run is too old, or failed an hour ago. A suspended shop is checked, since not every
// provider tells of its return.
const selectInstalled = `
SELECT c.connection_id, c.state = 'suspended',
    NOT EXISTS (
        SELECT FROM control.bootstrap_runs r
        WHERE r.connection_id = c.connection_id
            AND r.created_at > now() - CASE r.state
                WHEN 'failed' THEN least($1::interval, interval '1 hour')
                ELSE $1::interval END
    )
FROM control.connections c
JOIN control.installations i ON i.connection_id = c.connection_id
WHERE c.disabled_at IS NULL AND (c.state = 'suspended' OR c.state = 'active' AND i.state = 'completed')
ORDER BY c.connection_id`

// RequestCatchUps enqueues for every installed shop its catch-up, a bootstrap run when that is due, or its
// check.
func (c *Bootstraps) RequestCatchUps(ctx context.Context, reload time.Duration) error {
	err := c.inTx(ctx, func(tx pgx.Tx) error {
		type installed struct {
			ID        ident.ConnectionID
			Suspended bool
			Due       bool
		}
		rows, _ := tx.Query(ctx, selectInstalled, reload)
		all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[installed])
		if err != nil {
			return err
		}
		var suspended, current []ident.ConnectionID
		for _, one := range all {
			switch {
			case one.Suspended:
				suspended = append(suspended, one.ID)
			case !one.Due:
				current = append(current, one.ID)
			default:
				if _, err := openRun(ctx, tx, c.jobs, bootstrap.NewRun(one.ID, nil, time.Now())); err != nil {
					return err
				}
			}
		}
		if err := c.jobs.EnqueueShopCheck(ctx, tx, false, suspended...); err != nil {
			return err
		}
		return c.jobs.EnqueueCatchUp(ctx, tx, current...)
	})
	return Translate("request catch-ups", err)
}

const selectCaughtUp = `
SELECT coalesce(caught_up_at, opened_at), now()
FROM control.installations
WHERE connection_id = $1`

// LastCatchUp implements bootstrap.Store.
func (c *Bootstraps) LastCatchUp(ctx context.Context,
	conn ident.ConnectionID) (last, now time.Time, err error) {
	err = c.pool.QueryRow(ctx, selectCaughtUp, conn).Scan(&last, &now)
	if errors.Is(err, pgx.ErrNoRows) {
		return last, now, notFound("installation")
	}
	return last, now, Translate("read catch-up", err)
}

const setCaughtUp = `
UPDATE control.installations
SET caught_up_at = $2
WHERE connection_id = $1 AND (caught_up_at IS NULL OR caught_up_at < $2)`

// SetLastCatchUp implements bootstrap.Store.
func (c *Bootstraps) SetLastCatchUp(ctx context.Context, conn ident.ConnectionID, began time.Time) error {
	_, err := c.pool.Exec(ctx, setCaughtUp, conn, began)
	return Translate("note catch-up", err)
}
