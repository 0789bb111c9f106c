package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"storefront.internal/control/internal/bootstrap"
	"storefront.internal/control/internal/connection"
	"storefront.internal/control/internal/observation"
	"storefront.internal/shared/catalog"
	"storefront.internal/shared/failpoint"
	"storefront.internal/shared/fault"
	"storefront.internal/shared/ident"
)

// Bootstraps is the part of schema control that holds bootstrap runs and catch-ups. What they read goes
// through the Catalog.
type Bootstraps struct{ *Catalog }

// NewBootstraps returns Bootstraps that write to a Catalog.
func NewBootstraps(c *Catalog) *Bootstraps { return &Bootstraps{c} }

const (
	lockProvided = `
SELECT connection_id
FROM control.connections
WHERE connection_id = $1 AND provider <> $2
FOR NO KEY UPDATE`

	selectRunning = `
SELECT bootstrap_run_id
FROM control.bootstrap_runs
WHERE connection_id = $1 AND state IN ('queued', 'running')`

	hasCompletedRun = `
SELECT EXISTS (SELECT FROM control.bootstrap_runs WHERE connection_id = $1 AND state = 'completed')`

	insertRun = `
INSERT INTO control.bootstrap_runs (bootstrap_run_id, command_id, connection_id, state, resources)
VALUES ($1, $2, $3, 'queued', $4)`
)

// openRun opens a run, or returns the id of the unfinished one. Concurrent calls wait for each other at the
// lock on the connection.
func openRun(ctx context.Context, tx pgx.Tx, jobs Jobs, r bootstrap.Run) (running ident.RunID, err error) {
	var c ident.ConnectionID
	if err := tx.QueryRow(ctx, lockProvided, r.ConnectionID,
		connection.ProviderCustom).Scan(&c); errors.Is(err, pgx.ErrNoRows) {
		return "", notFound("connection of a provider")
	} else if err != nil {
		return "", err
	}
	if err := reviveInstallation(ctx, tx, jobs, r.ConnectionID); err != nil {
		return "", err
	}
	err = tx.QueryRow(ctx, selectRunning, r.ConnectionID).Scan(&running)
	if !errors.Is(err, pgx.ErrNoRows) {
		return running, err
	}
	resources, err := json.Marshal(storedProgress{Resources: r.Resources})
	if err != nil {
		return "", fmt.Errorf("resources of a run: %w", err)
	}
	if _, err := tx.Exec(ctx, insertRun, r.ID, r.CommandID, r.ConnectionID, resources); err != nil {
		return "", err
	}
	return "", enqueueRun(ctx, tx, jobs, r.ConnectionID, r.ID)
}

// enqueueRun enqueues a run that somebody waits for.
func enqueueRun(ctx context.Context, tx pgx.Tx, jobs Jobs, c ident.ConnectionID, id ident.RunID) error {
	var completed bool
	if err := tx.QueryRow(ctx, hasCompletedRun, c).Scan(&completed); err != nil {
		return err
	}
	urgency := bootstrap.First
	if completed {
		urgency = bootstrap.Requested
	}
	return jobs.EnqueueBootstrap(ctx, tx, urgency, id)
}

// storedProgress is the JSON of column resources.
type storedProgress struct {
	Failures  int                                    `json:"failures,omitempty"`
	Resources map[catalog.Entity]*bootstrap.Progress `json:"resources"`
}

// OpenRun implements bootstrap.RunStore.
func (c *Bootstraps) OpenRun(ctx context.Context, r bootstrap.Run) error {
	err := c.inTx(ctx, func(tx pgx.Tx) error {
		running, err := openRun(ctx, tx, c.jobs, r)
		if err == nil && running != "" {
			return &fault.Error{
				Code: fault.BootstrapRunning, Detail: "A bootstrap run of this connection is not finished.",
				Extra: map[string]any{"bootstrap_run_id": string(running)},
			}
		}
		return err
	})
	return Translate("open bootstrap run", err)
}

const (
	selectRun = `
SELECT bootstrap_run_id, command_id, connection_id, state, coalesce(reason, ''), resources
FROM control.bootstrap_runs
WHERE bootstrap_run_id = $1`

	lockRun = selectRun + `
FOR NO KEY UPDATE`
)

func scanRun(row pgx.Row) (r bootstrap.Run, err error) {
	var resources []byte
	if err = row.Scan(&r.ID, &r.CommandID, &r.ConnectionID, &r.State, &r.Reason, &resources); err != nil {
		return r, err
	}
	var p storedProgress
	if err = json.Unmarshal(resources, &p); err != nil {
		return r, fmt.Errorf("resources of a run: %w", err)
	}
	r.Failures, r.Resources = p.Failures, p.Resources
	return r, nil
}

// Run implements bootstrap.RunStore.
func (c *Bootstraps) Run(ctx context.Context, conn ident.ConnectionID,
	id ident.RunID) (bootstrap.Run, error) {
	r, err := scanRun(c.pool.QueryRow(ctx, selectRun, id))
	if errors.Is(err, pgx.ErrNoRows) || err == nil && r.ConnectionID != conn {
		return bootstrap.Run{}, notFound("bootstrap run")
	}
	return r, Translate("read bootstrap run", err)
}

const saveRun = `
UPDATE control.bootstrap_runs
SET state = $2, reason = nullif($3, ''), resources = $4, updated_at = now()
WHERE bootstrap_run_id = $1`

// updateRun locks an unfinished run, calls fn and saves the run.
func (c *Bootstraps) updateRun(ctx context.Context, id ident.RunID,
	fn func(tx pgx.Tx, r *bootstrap.Run) error) error {
	return c.inTx(ctx, func(tx pgx.Tx) error {
		r, err := scanRun(tx.QueryRow(ctx, lockRun, id))
		if errors.Is(err, pgx.ErrNoRows) || err == nil && r.State != bootstrap.Queued &&
			r.State != bootstrap.Running {
			return bootstrap.ErrSuperseded
		}
		if err != nil {
			return err
		}
		if err := fn(tx, &r); err != nil {
			return err
		}
		resources, err := json.Marshal(storedProgress{r.Failures, r.Resources})
		if err != nil {
			return fmt.Errorf("resources of a run: %w", err)
		}
		_, err = tx.Exec(ctx, saveRun, id, r.State, r.Reason, resources)
		return err
	})
}

// StartRun implements bootstrap.Store.
func (c *Bootstraps) StartRun(ctx context.Context, id ident.RunID) (run bootstrap.Run, err error) {
	err = c.updateRun(ctx, id, func(_ pgx.Tx, r *bootstrap.Run) error {
		r.State = bootstrap.Running
		run = *r
		return nil
	})
	return run, Translate("start bootstrap run", err)
}

// SavePage implements bootstrap.Store. It locks the run before the entities.
func (c *Bootstraps) SavePage(ctx context.Context, id ident.RunID, e catalog.Entity, saves int64,
	b *observation.Batch, t bootstrap.NextProgress) (outcomes []observation.Outcome, err error) {
	err = c.updateRun(ctx, id, func(tx pgx.Tx, r *bootstrap.Run) error {
		p := r.Resources[e]
		if p == nil || p.Saves != saves {
			return bootstrap.ErrSuperseded
		}
		outcomes = nil
		if len(b.Elements) > 0 {
			if outcomes, err = c.apply(ctx, tx, b); err != nil {
				return err
			}
		}
		r.Failures, r.Reason = 0, ""
		*p = t(outcomes)
		failpoint.Hit(failpoint.PageBeforeCommit)
		return nil
	})
	return outcomes, Translate("save page", err)
}

// RecordFailure implements bootstrap.Store.
func (c *Bootstraps) RecordFailure(ctx context.Context, id ident.RunID, failures int, reason string) error {
	err := c.updateRun(ctx, id, func(_ pgx.Tx, r *bootstrap.Run) error {
		r.Failures, r.Reason = failures, reason
		return nil
	})
	return Translate("record failure of bootstrap run", err)
}

// FinishRun implements bootstrap.Store.
func (c *Bootstraps) FinishRun(ctx context.Context, id ident.RunID, to bootstrap.State, reason string) error {
	err := c.updateRun(ctx, id, func(_ pgx.Tx, r *bootstrap.Run) error {
		r.State, r.Reason = to, reason
		return nil
	})
	return Translate("finish bootstrap run", err)
}
