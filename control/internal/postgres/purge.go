package postgres

import (
	"context"
	"time"
)

const purgeRuns = `SELECT control.purge_bootstrap_runs($1, $2)`

// PurgeRuns is a jobs.Purger of ended bootstrap runs. The last run of a connection, and its last completed
// one, stay.
func (c *Bootstraps) PurgeRuns(ctx context.Context, before time.Time, most int) (deleted int, err error) {
	err = c.pool.QueryRow(ctx, purgeRuns, before, most).Scan(&deleted)
	return deleted, Translate("purge bootstrap runs", err)
}
