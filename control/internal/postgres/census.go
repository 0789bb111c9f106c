package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"storefront.internal/control/internal/census"
)

// Census reads what is counted, in one snapshot.
func (s *Store) Census(ctx context.Context) (f census.Figures, err error) {
	f = census.Figures{Installations: map[string]int{}, Loads: map[string]int{}, Privacy: map[string]int{}, Jobs: map[census.Job]int{}}
	err = pgx.BeginTxFunc(ctx, s.pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		return readCensus(ctx, tx, &f)
	})
	return f, Translate("take the census", err)
}

// The states that a figure is shown of even when nothing is in them.
const (
	countInstallations = `
SELECT s.state, count(i.installation_id)
FROM unnest(ARRAY['opened', 'webhooks_registered', 'bootstrap_started', 'completed', 'failed']) AS s (state)
LEFT JOIN control.installations i ON i.state = s.state
GROUP BY s.state`
	countLoads = `
SELECT s.state, count(b.bootstrap_run_id)
FROM unnest(ARRAY['queued', 'running']) AS s (state)
LEFT JOIN control.bootstrap_runs b ON b.state = s.state AND b.state IN ('queued', 'running')
GROUP BY s.state`
	countPrivacy = `
SELECT s.kind, count(q.request_id)
FROM unnest(ARRAY['data_request', 'redact_customer', 'redact_store']) AS s (kind)
LEFT JOIN control.privacy_requests q ON q.kind = s.kind AND q.completed_at IS NULL
GROUP BY s.kind`
	countJobs = `
SELECT queue, state::text, count(*)
FROM control.river_job
WHERE state IN ('available', 'pending', 'retryable', 'running', 'scheduled', 'discarded')
GROUP BY queue, state`
	readAges = `
SELECT coalesce((SELECT extract(epoch FROM now() - min(opened_at))::float8
                 FROM control.installations WHERE state NOT IN ('completed', 'failed')), 0),
       coalesce((SELECT extract(epoch FROM now() - min(updated_at))::float8
                 FROM control.bootstrap_runs WHERE state IN ('queued', 'running')), 0),
       coalesce((SELECT extract(epoch FROM now() - min(received_at))::float8
                 FROM control.privacy_requests WHERE completed_at IS NULL), 0),
       (SELECT coalesce(min(day), 61) - 1
        FROM generate_series(1, 60) AS day, unnest(ARRAY['observations', 'webhook_deliveries']) AS parent
        WHERE to_regclass(format('control.%s_p%s', parent, to_char((now() AT TIME ZONE 'UTC')::date + day, 'YYYYMMDD'))) IS NULL)`
)

func readCensus(ctx context.Context, tx pgx.Tx, f *census.Figures) error {
	for query, into := range map[string]map[string]int{countInstallations: f.Installations, countLoads: f.Loads, countPrivacy: f.Privacy} {
		var state string
		var n int
		rows, _ := tx.Query(ctx, query)
		if _, err := pgx.ForEachRow(rows, []any{&state, &n}, func() error { into[state] = n; return nil }); err != nil {
			return err
		}
	}
	var job census.Job
	var n int
	rows, _ := tx.Query(ctx, countJobs)
	if _, err := pgx.ForEachRow(rows, []any{&job.Queue, &job.State, &n}, func() error { f.Jobs[job] = n; return nil }); err != nil {
		return err
	}
	var oldest, stillest, privacy float64
	if err := tx.QueryRow(ctx, readAges).Scan(&oldest, &stillest, &privacy, &f.DaysAhead); err != nil {
		return err
	}
	f.OldestInstallation, f.StillestLoad, f.OldestPrivacy = seconds(oldest), seconds(stillest), seconds(privacy)
	return nil
}

func seconds(s float64) time.Duration { return time.Duration(max(s, 0) * float64(time.Second)) }
