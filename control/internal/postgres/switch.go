package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"storefront.internal/control/internal/installation"
	"storefront.internal/control/internal/shop"
	"storefront.internal/shared/ident"
	"storefront.internal/shared/pg"
)

// Switch disables and enables connections.
type Switch struct {
	pool *pgxpool.Pool
	jobs Jobs
}

// NewSwitch returns the Switch.
func NewSwitch(pool *pgxpool.Pool, jobs Jobs) *Switch { return &Switch{pool: pool, jobs: jobs} }

// DisabledConnection is a connection that is disabled.
type DisabledConnection struct {
	ID     ident.ConnectionID
	At     time.Time
	By     shop.DisabledBy
	Reason string
}

const selectDisabled = `
SELECT connection_id, disabled_at, disabled_by, coalesce(disabled_reason, '')
FROM control.connections
WHERE disabled_at IS NOT NULL
ORDER BY disabled_at
LIMIT 1000`

// ListDisabled returns the connections that are disabled, the oldest first.
func (s *Switch) ListDisabled(ctx context.Context) ([]DisabledConnection, error) {
	return list(ctx, s.pool, "list disabled connections", pgx.RowToStructByPos[DisabledConnection],
		selectDisabled)
}

// A connection that is disabled keeps who disabled it first.
const disableConnection = `
UPDATE control.connections
SET disabled_at = now(), disabled_by = $2, disabled_reason = $3
WHERE connection_id = $1 AND disabled_at IS NULL`

// Disable reports false for a connection that does not exist or is disabled.
func (s *Switch) Disable(ctx context.Context, c ident.ConnectionID, by shop.DisabledBy,
	reason string) (disabled bool, err error) {
	tag, err := s.pool.Exec(ctx, disableConnection, c, by, pg.SafeText(reason, maxDisabledReason))
	return tag.RowsAffected() > 0, Translate("disable connection", err)
}

const maxDisabledReason = 500

const connectionOfJob = `
SELECT coalesce(nullif($1, ''),
    (SELECT connection_id FROM control.bootstrap_runs WHERE bootstrap_run_id = $2),
    (SELECT connection_id FROM control.installations WHERE installation_id = $3), '')`

// HoldConnection disables the connection that a job works for. It implements jobs.Holder.
func (s *Switch) HoldConnection(ctx context.Context, c ident.ConnectionID, run ident.RunID,
	i ident.InstallationID, reason string) (held ident.ConnectionID, err error) {
	if err := s.pool.QueryRow(ctx, connectionOfJob, c, run, i).Scan(&held); err != nil || held == "" {
		return "", Translate("find connection of job", err)
	}
	_, err = s.Disable(ctx, held, shop.DisabledByCrashes, reason)
	return held, err
}

const (
	enableConnection = `
UPDATE control.connections
SET disabled_at = NULL, disabled_by = NULL, disabled_reason = NULL
WHERE connection_id = $1 AND disabled_at IS NOT NULL`

	sweepConnectionNow = `
UPDATE control.entities
SET sweep_at = 'epoch'
WHERE connection_id = $1 AND dirty_seq > clean_seq AND redacted_at IS NULL`

	selectInstallationOf = `
SELECT installation_id, epoch, state = 'completed'
FROM control.installations
WHERE connection_id = $1`
)

// Enable lets the work for a connection continue: its installation, its bootstrap run, a catch-up, and the
// entities that webhooks marked meanwhile. It reports false for a connection that is not disabled.
func (s *Switch) Enable(ctx context.Context, c ident.ConnectionID) (enabled bool, err error) {
	err = pg.InTx(ctx, s.pool, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, enableConnection, c)
		if enabled = tag.RowsAffected() > 0; err != nil || !enabled {
			return err
		}
		var saga installation.Ref
		var completed bool
		err = tx.QueryRow(ctx, selectInstallationOf, c).Scan(&saga.ID, &saga.Epoch, &completed)
		if errors.Is(err, pgx.ErrNoRows) { // of a custom connector
			return nil
		}
		if err != nil {
			return err
		}
		return s.resume(ctx, tx, c, saga, completed)
	})
	return enabled && err == nil, Translate("enable connection", err)
}

func (s *Switch) resume(ctx context.Context, tx pgx.Tx, c ident.ConnectionID, saga installation.Ref,
	completed bool) error {
	if _, err := tx.Exec(ctx, sweepConnectionNow, c); err != nil {
		return err
	}
	if !completed {
		if err := s.jobs.EnqueueInstallations(ctx, tx, saga); err != nil {
			return err
		}
	}
	var run ident.RunID
	err := tx.QueryRow(ctx, selectRunning, c).Scan(&run)
	if err == nil {
		err = enqueueRun(ctx, tx, s.jobs, c, run)
	}
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return err
	}
	return s.jobs.EnqueueCatchUp(ctx, tx, c)
}
