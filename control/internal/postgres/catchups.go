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
func (c *Catalog) Missing(ctx context.Context, conn ident.ConnectionID, e catalog.Entity, before int64, after string, limit int) ([]string, error) {
	rows, err := c.pool.Query(ctx, selectMissing, conn, e, after, before, limit)
	if err != nil {
		return nil, Translate("read missing entities", err)
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
	return ids, Translate("read missing entities", err)
}

const resumeRuns = `
UPDATE control.bootstrap_runs
SET resume_at = now() + interval '1 minute'
WHERE state IN ('queued', 'running') AND resume_at < now()
RETURNING bootstrap_run_id`

// ResumeLoads gives runs that nobody works another job.
func (c *Catalog) ResumeLoads(ctx context.Context) error {
	err := c.inTx(ctx, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, resumeRuns)
		if err != nil {
			return err
		}
		ids, err := pgx.CollectRows(rows, pgx.RowTo[ident.RunID])
		for _, id := range ids {
			err = errors.Join(err, c.jobs.EnqueueLoad(ctx, tx, id))
		}
		return err
	})
	return Translate("resume loads", err)
}

// A shop whose last load is too old is due: a catch-up does not find what was deleted. A load that failed is tried again
// after an hour. A suspended one is asked whether
// it is back, since not every return is told.
const selectInstalled = `
SELECT c.connection_id, c.state = 'suspended',
    NOT EXISTS (
        SELECT FROM control.bootstrap_runs r
        WHERE r.connection_id = c.connection_id
            AND r.created_at > now() - CASE r.state WHEN 'failed' THEN least($1::interval, interval '1 hour') ELSE $1::interval END
    )
FROM control.connections c
JOIN control.installations i ON i.connection_id = c.connection_id
WHERE c.state = 'suspended' OR c.state = 'active' AND i.state = 'completed'
ORDER BY c.connection_id`

// RequestCatchUps enqueues the catch-up of every installed shop, its load when that is due, or its check.
func (c *Catalog) RequestCatchUps(ctx context.Context, reload time.Duration) error {
	err := c.inTx(ctx, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, selectInstalled, reload)
		if err != nil {
			return err
		}
		type installed struct {
			ID        ident.ConnectionID
			Suspended bool
			Due       bool
		}
		all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[installed])
		if err != nil {
			return err
		}
		for _, one := range all {
			switch {
			case one.Suspended:
				err = c.jobs.EnqueueShopCheck(ctx, tx, one.ID, false)
			case one.Due:
				_, err = openRun(ctx, tx, c.jobs, bootstrap.NewRun(one.ID, nil, time.Now()))
			default:
				err = c.jobs.EnqueueCatchUp(ctx, tx, one.ID)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	return Translate("request catch-ups", err)
}

const selectCaughtUp = `
SELECT coalesce(caught_up_at, opened_at), now()
FROM control.installations
WHERE connection_id = $1`

// LastCatchUp implements bootstrap.Store.
func (c *Catalog) LastCatchUp(ctx context.Context, conn ident.ConnectionID) (last, now time.Time, err error) {
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

// CaughtUp implements bootstrap.Store.
func (c *Catalog) CaughtUp(ctx context.Context, conn ident.ConnectionID, began time.Time) error {
	_, err := c.pool.Exec(ctx, setCaughtUp, conn, began)
	return Translate("note catch-up", err)
}
