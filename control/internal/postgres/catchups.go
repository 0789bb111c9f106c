package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
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
SELECT r.bootstrap_run_id, NOT EXISTS (
    SELECT FROM control.bootstrap_runs b
    WHERE b.connection_id = r.connection_id AND b.state = 'completed')
FROM control.bootstrap_runs r
JOIN control.connections c ON c.connection_id = r.connection_id
WHERE r.state IN ('queued', 'running') AND c.disabled_at IS NULL AND r.bootstrap_run_id > $1
ORDER BY r.bootstrap_run_id
LIMIT $2`

// openedRun is a run to enqueue.
type openedRun struct {
	ID    ident.RunID
	First bool // no run of the shop has completed
}

// RequeueRuns gives each unfinished run its job, if it has none.
func (c *Bootstraps) RequeueRuns(ctx context.Context) error {
	var last ident.RunID
	return inPages(ctx, c.pool, "requeue bootstrap runs", func(tx pgx.Tx) (int, error) {
		rows, _ := tx.Query(ctx, selectUnfinishedRuns, last, periodicPage)
		all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[openedRun])
		if err != nil || len(all) == 0 {
			return 0, err
		}
		last = all[len(all)-1].ID
		return len(all), c.enqueuePeriodic(ctx, tx, all)
	})
}

// enqueuePeriodic enqueues runs that nobody asked for.
func (c *Bootstraps) enqueuePeriodic(ctx context.Context, tx pgx.Tx, all []openedRun) error {
	byUrgency := map[bootstrap.Urgency][]ident.RunID{}
	for _, r := range all {
		urgency := bootstrap.Periodic
		if r.First {
			urgency = bootstrap.First
		}
		byUrgency[urgency] = append(byUrgency[urgency], r.ID)
	}
	for urgency, runs := range byUrgency {
		if err := c.jobs.EnqueueBootstrap(ctx, tx, urgency, runs...); err != nil {
			return err
		}
	}
	return nil
}

// takeDueShops takes shops whose catch-up is due and sets when the next one is: each shop has its own place
// within the interval. It tells which are due for a bootstrap run instead, since a catch-up does not find
// deletions: those whose last run is too old, or failed an hour ago. Runs of many shops that were opened at
// once drift apart: the greatest age of a run differs by up to a fifth. A suspended shop is checked, since
// not every provider tells of its return. Shops that are locked wait for the next time: nobody waits for a
// lock here, so there is no deadlock with a reinstallation.
const takeDueShops = `
WITH due AS MATERIALIZED (
    SELECT c.connection_id, c.state = 'suspended' AS suspended,
        ` + placeInInterval + ` AS place
    FROM control.installations i
    JOIN control.connections c ON c.connection_id = i.connection_id
    WHERE i.catch_up_at <= now() AND c.disabled_at IS NULL
        AND (c.state = 'suspended' OR c.state = 'active' AND i.state = 'completed')
    ORDER BY i.catch_up_at
    LIMIT $3
    FOR NO KEY UPDATE OF i, c SKIP LOCKED
),
moved AS (
    UPDATE control.installations i
    SET catch_up_at = $1::interval
        + date_bin($1::interval, now(), 'epoch'::timestamptz + $1::interval * d.place)
    FROM due d
    WHERE i.connection_id = d.connection_id
)
SELECT d.connection_id, d.suspended,
    NOT EXISTS (
        SELECT FROM control.bootstrap_runs r
        WHERE r.connection_id = d.connection_id
            AND r.created_at > now() - CASE r.state
                WHEN 'failed' THEN least($2::interval, interval '1 hour')
                ELSE $2::interval * (1 - d.place / 5) END
    )
FROM due d`

// dueShops are a page of shops, by what they are due for.
type dueShops struct{ checks, reloads, catchUps []ident.ConnectionID }

// RequestCatchUps enqueues for every installed shop that is due its catch-up, a bootstrap run, or its check.
func (c *Bootstraps) RequestCatchUps(ctx context.Context, every, reload time.Duration) error {
	return inPages(ctx, c.pool, "request catch-ups", func(tx pgx.Tx) (int, error) {
		var due dueShops
		var shop ident.ConnectionID
		var suspended, old bool
		rows, _ := tx.Query(ctx, takeDueShops, every, reload, periodicPage)
		tag, err := pgx.ForEachRow(rows, []any{&shop, &suspended, &old}, func() error {
			switch {
			case suspended:
				due.checks = append(due.checks, shop)
			case old:
				due.reloads = append(due.reloads, shop)
			default:
				due.catchUps = append(due.catchUps, shop)
			}
			return nil
		})
		if err != nil {
			return 0, err
		}
		return int(tag.RowsAffected()), c.enqueueDue(ctx, tx, due)
	})
}

func (c *Bootstraps) enqueueDue(ctx context.Context, tx pgx.Tx, due dueShops) error {
	if err := c.jobs.EnqueuePeriodicChecks(ctx, tx, due.checks...); err != nil {
		return err
	}
	if err := c.openReloads(ctx, tx, due.reloads); err != nil {
		return err
	}
	return c.jobs.EnqueueCatchUp(ctx, tx, due.catchUps...)
}

const insertRuns = `
INSERT INTO control.bootstrap_runs AS r (bootstrap_run_id, command_id, connection_id, state, resources)
SELECT n.id, n.command, n.connection, 'queued', $4
FROM unnest($1::text[], $2::text[], $3::text[]) AS n (id, command, connection)
ON CONFLICT (connection_id) WHERE state IN ('queued', 'running') DO NOTHING
RETURNING r.bootstrap_run_id, NOT EXISTS (
    SELECT FROM control.bootstrap_runs b
    WHERE b.connection_id = r.connection_id AND b.state = 'completed')`

// openReloads opens a run of each shop that has no unfinished one. The transaction holds the connections.
func (c *Bootstraps) openReloads(ctx context.Context, tx pgx.Tx, shops []ident.ConnectionID) error {
	if len(shops) == 0 {
		return nil
	}
	ids, commands := make([]ident.RunID, len(shops)), make([]ident.CommandID, len(shops))
	var resources []byte
	for i, shop := range shops {
		r := bootstrap.NewRun(shop, nil, time.Now())
		ids[i], commands[i] = r.ID, r.CommandID
		var err error
		if resources, err = json.Marshal(storedProgress{Resources: r.Resources}); err != nil {
			return fmt.Errorf("resources of a run: %w", err)
		}
	}
	rows, _ := tx.Query(ctx, insertRuns, ids, commands, shops, resources)
	opened, err := pgx.CollectRows(rows, pgx.RowToStructByPos[openedRun])
	if err != nil {
		return err
	}
	return c.enqueuePeriodic(ctx, tx, opened)
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
