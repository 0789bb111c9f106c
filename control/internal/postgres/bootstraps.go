package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"storefront.internal/control/internal/bootstrap"
	"storefront.internal/control/internal/connection"
	"storefront.internal/control/internal/observation"
	"storefront.internal/shared/catalog"
	"storefront.internal/shared/crashpoint"
	"storefront.internal/shared/fault"
	"storefront.internal/shared/ident"
)

// LoadJobs enqueues loads, in the transaction that opens them.
type LoadJobs interface {
	EnqueueLoad(ctx context.Context, tx pgx.Tx, id ident.RunID) error
}

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

	// A load that is wanted of a shop whose installation failed says that it may be tried again.
	hurrySaga = `
UPDATE control.installations
SET due_at = now()
WHERE connection_id = $1 AND state = 'failed'`

	insertRun = `
INSERT INTO control.bootstrap_runs (bootstrap_run_id, command_id, connection_id, state, resources, resume_at)
VALUES ($1, $2, $3, 'queued', $4, now() + interval '1 minute')`
)

// openRun opens a run unless one runs, whose id it returns then. Two that open one wait for each other at the connection.
func openRun(ctx context.Context, tx pgx.Tx, jobs LoadJobs, r bootstrap.Run) (running ident.RunID, err error) {
	var c ident.ConnectionID
	if err := tx.QueryRow(ctx, lockProvided, r.ConnectionID, connection.ProviderCustom).Scan(&c); errors.Is(err, pgx.ErrNoRows) {
		return "", notFound("connection of a provider")
	} else if err != nil {
		return "", err
	}
	if _, err := tx.Exec(ctx, hurrySaga, r.ConnectionID); err != nil {
		return "", err
	}
	err = tx.QueryRow(ctx, selectRunning, r.ConnectionID).Scan(&running)
	if !errors.Is(err, pgx.ErrNoRows) {
		return running, err
	}
	resources, err := json.Marshal(progress{Resources: r.Resources})
	if err != nil {
		return "", fmt.Errorf("resources of a run: %w", err)
	}
	if _, err := tx.Exec(ctx, insertRun, r.ID, r.CommandID, r.ConnectionID, resources); err != nil {
		return "", err
	}
	return "", jobs.EnqueueLoad(ctx, tx, r.ID)
}

// progress is the form of column resources.
type progress struct {
	Failures  int                                    `json:"failures,omitempty"`
	Resources map[catalog.Entity]*bootstrap.Progress `json:"resources"`
}

// Open implements bootstrap.Runs.
func (c *Catalog) Open(ctx context.Context, r bootstrap.Run) error {
	err := c.inTx(ctx, func(tx pgx.Tx) error {
		running, err := openRun(ctx, tx, c.jobs, r)
		if err == nil && running != "" {
			return &fault.Error{
				Code: fault.BootstrapRunning, Detail: "A load of this connection runs.",
				Extra: map[string]any{"bootstrap_run_id": string(running)},
			}
		}
		return err
	})
	return Translate("open load", err)
}

const (
	selectRun = `
SELECT bootstrap_run_id, command_id, connection_id, state, coalesce(reason, ''), resources
FROM control.bootstrap_runs
WHERE bootstrap_run_id = $1`

	holdRun = selectRun + `
FOR NO KEY UPDATE`
)

func scanRun(row pgx.Row) (r bootstrap.Run, err error) {
	var resources []byte
	if err = row.Scan(&r.ID, &r.CommandID, &r.ConnectionID, &r.State, &r.Reason, &resources); err != nil {
		return r, err
	}
	var p progress
	if err = json.Unmarshal(resources, &p); err != nil {
		return r, fmt.Errorf("resources of a run: %w", err)
	}
	r.Failures, r.Resources = p.Failures, p.Resources
	return r, nil
}

// Run implements bootstrap.Runs.
func (c *Catalog) Run(ctx context.Context, conn ident.ConnectionID, id ident.RunID) (bootstrap.Run, error) {
	r, err := scanRun(c.pool.QueryRow(ctx, selectRun, id))
	if errors.Is(err, pgx.ErrNoRows) || err == nil && r.ConnectionID != conn {
		return bootstrap.Run{}, notFound("load")
	}
	return r, Translate("read load", err)
}

const saveRun = `
UPDATE control.bootstrap_runs
SET state = $2, reason = nullif($3, ''), resources = $4, resume_at = now() + $5::interval + interval '1 minute', updated_at = now()
WHERE bootstrap_run_id = $1`

// inRun locks a run that has not ended and saves what fn makes of it.
func (c *Catalog) inRun(ctx context.Context, id ident.RunID, wait time.Duration, fn func(tx pgx.Tx, r *bootstrap.Run) error) error {
	return c.inTx(ctx, func(tx pgx.Tx) error {
		r, err := scanRun(tx.QueryRow(ctx, holdRun, id))
		if errors.Is(err, pgx.ErrNoRows) || err == nil && r.State != bootstrap.Queued && r.State != bootstrap.Running {
			return bootstrap.ErrSuperseded
		}
		if err != nil {
			return err
		}
		if err := fn(tx, &r); err != nil {
			return err
		}
		resources, err := json.Marshal(progress{r.Failures, r.Resources})
		if err != nil {
			return fmt.Errorf("resources of a run: %w", err)
		}
		_, err = tx.Exec(ctx, saveRun, id, r.State, r.Reason, resources, wait)
		return err
	})
}

// Take implements bootstrap.Store.
func (c *Catalog) Take(ctx context.Context, id ident.RunID) (run bootstrap.Run, err error) {
	err = c.inRun(ctx, id, 0, func(_ pgx.Tx, r *bootstrap.Run) error {
		r.State = bootstrap.Running
		run = *r
		return nil
	})
	return run, Translate("take load", err)
}

// SavePage implements bootstrap.Store. The run is locked before the entities.
func (c *Catalog) SavePage(ctx context.Context, id ident.RunID, e catalog.Entity, saves int64, b *observation.Batch, t bootstrap.Tally) (outcomes []observation.Outcome, err error) {
	err = c.inRun(ctx, id, 0, func(tx pgx.Tx, r *bootstrap.Run) error {
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
		crashpoint.Hit(crashpoint.PageBeforeCommit)
		return nil
	})
	return outcomes, Translate("save page", err)
}

// Wait implements bootstrap.Store.
func (c *Catalog) Wait(ctx context.Context, id ident.RunID, failures int, reason string, wait time.Duration) error {
	err := c.inRun(ctx, id, wait, func(_ pgx.Tx, r *bootstrap.Run) error {
		r.Failures, r.Reason = failures, reason
		return nil
	})
	return Translate("put load off", err)
}

// End implements bootstrap.Store.
func (c *Catalog) End(ctx context.Context, id ident.RunID, to bootstrap.State, reason string) error {
	err := c.inRun(ctx, id, 0, func(_ pgx.Tx, r *bootstrap.Run) error {
		r.State, r.Reason = to, reason
		return nil
	})
	return Translate("end load", err)
}
