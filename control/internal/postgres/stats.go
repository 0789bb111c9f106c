package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"storefront.internal/control/internal/stats"
)

// Figures implements stats.Store, in one snapshot.
func (s *Store) Figures(ctx context.Context, l stats.Limits) (f stats.Figures, err error) {
	f = stats.Figures{
		Installations: map[string]int{}, Bootstraps: map[string]int{}, Privacy: map[string]int{},
		Disabled: map[string]int{},
		Jobs:     map[stats.Job]int{},
		Silence:  map[string]stats.Silence{},
		Late:     map[string]int{},
	}
	snapshot := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	err = pgx.BeginTxFunc(ctx, s.pool, snapshot, func(tx pgx.Tx) error {
		if err := readCounts(ctx, tx, &f); err != nil {
			return err
		}
		var provider string
		var longest float64
		var silent, late int
		rows, _ := tx.Query(ctx, selectShopFigures, l.Silent, l.Late)
		if _, err := pgx.ForEachRow(rows, []any{&provider, &longest, &silent, &late}, func() error {
			f.Silence[provider] = stats.Silence{Longest: seconds(longest), Shops: silent}
			f.Late[provider] = late
			return nil
		}); err != nil {
			return err
		}
		return readAges(ctx, tx, &f)
	})
	return f, Translate("read figures", err)
}

// Each count covers every state, so that a state without rows counts 0.
const (
	countInstallations = `
SELECT s.state, count(i.installation_id)
FROM unnest(ARRAY['opened', 'webhooks_registered', 'bootstrap_started', 'completed', 'failed']) AS s (state)
LEFT JOIN control.installations i ON i.state = s.state
GROUP BY s.state`
	countBootstraps = `
SELECT s.state, count(b.bootstrap_run_id)
FROM unnest(ARRAY['queued', 'running']) AS s (state)
LEFT JOIN control.bootstrap_runs b ON b.state = s.state AND b.state IN ('queued', 'running')
GROUP BY s.state`
	countPrivacy = `
SELECT s.kind, count(q.request_id)
FROM unnest(ARRAY['data_request', 'redact_customer', 'redact_store']) AS s (kind)
LEFT JOIN control.privacy_requests q ON q.kind = s.kind AND q.completed_at IS NULL
GROUP BY s.kind`
	countDisabled = `
SELECT s.by, count(c.connection_id)
FROM unnest(ARRAY['operator', 'crashes']) AS s (by)
LEFT JOIN control.connections c ON c.disabled_by = s.by
GROUP BY s.by`
	countRefused = `
SELECT count(*)
FROM control.credentials k
JOIN control.connections c ON c.connection_id = k.connection_id AND c.state = 'active'
LEFT JOIN control.installations i ON i.connection_id = k.connection_id
WHERE k.refused_at > greatest(k.updated_at, i.caught_up_at)`
	countJobs = `
SELECT queue, state::text, count(*)
FROM control.river_job
WHERE state IN ('available', 'pending', 'retryable', 'running', 'scheduled', 'discarded')
GROUP BY queue, state`
	selectAges = `
SELECT coalesce((SELECT extract(epoch FROM now() - min(opened_at))::float8
                 FROM control.installations i
                 WHERE state NOT IN ('completed', 'failed') AND NOT EXISTS (
                     SELECT FROM control.connections c
                     WHERE c.connection_id = i.connection_id AND c.disabled_at IS NOT NULL)), 0),
       coalesce((SELECT extract(epoch FROM now() - min(updated_at))::float8
                 FROM control.bootstrap_runs b
                 WHERE state IN ('queued', 'running') AND NOT EXISTS (
                     SELECT FROM control.connections c
                     WHERE c.connection_id = b.connection_id AND c.disabled_at IS NOT NULL)), 0),
       coalesce((SELECT extract(epoch FROM now() - min(received_at))::float8
                 FROM control.privacy_requests WHERE completed_at IS NULL), 0),
       (SELECT coalesce(min(day), 61) - 1
        FROM generate_series(1, 60) AS day, unnest(ARRAY['observations', 'webhook_deliveries']) AS parent
        WHERE to_regclass(format('control.%s_p%s', parent,
            to_char((now() AT TIME ZONE 'UTC')::date + day, 'YYYYMMDD'))) IS NULL)`

	// A shop is also late when its last run is as old as that. Runs are looked up for the others alone.
	selectShopFigures = `
SELECT i.provider, extract(epoch FROM max(now() - greatest(i.heard_at, i.opened_at)))::float8,
    count(*) FILTER (WHERE greatest(i.heard_at, i.opened_at) < now() - $1::interval),
    count(*) FILTER (WHERE greatest(i.caught_up_at, i.opened_at) < now() - $2::interval
        AND c.disabled_at IS NULL AND NOT EXISTS (
            SELECT FROM control.bootstrap_runs b
            WHERE b.connection_id = i.connection_id AND b.created_at > now() - $2::interval))
FROM control.installations i
JOIN control.connections c ON c.connection_id = i.connection_id
WHERE c.state = 'active' AND i.state = 'completed'
GROUP BY i.provider`

	// The limits keep the reading cheap when the quarantine is flooded. The kind of the job is package jobs'.
	selectArchiveFigures = `
SELECT (SELECT count(*) FROM (SELECT FROM control.observations WHERE state = 'quarantined' LIMIT 10000) q),
       (SELECT count(*) FROM (SELECT minted_at FROM control.observations_default LIMIT 1000) d)
           + (SELECT count(*) FROM (SELECT minted_at FROM control.webhook_deliveries_default LIMIT 1000) w),
       coalesce((SELECT extract(epoch FROM now() - min(created_at))::float8
                 FROM control.river_job
                 WHERE kind = 'item_push' AND state IN ('available', 'pending', 'retryable', 'running',
                     'scheduled')), 0)`
)

func readCounts(ctx context.Context, tx pgx.Tx, f *stats.Figures) error {
	counts := map[string]map[string]int{countInstallations: f.Installations, countBootstraps: f.Bootstraps,
		countPrivacy: f.Privacy, countDisabled: f.Disabled}
	for query, into := range counts {
		var state string
		var n int
		rows, _ := tx.Query(ctx, query)
		if _, err := pgx.ForEachRow(rows, []any{&state, &n},
			func() error { into[state] = n; return nil }); err != nil {
			return err
		}
	}
	if err := tx.QueryRow(ctx, countRefused).Scan(&f.Refused); err != nil {
		return err
	}
	var job stats.Job
	var n int
	rows, _ := tx.Query(ctx, countJobs)
	_, err := pgx.ForEachRow(rows, []any{&job.Queue, &job.State, &n},
		func() error { f.Jobs[job] = n; return nil })
	return err
}

func readAges(ctx context.Context, tx pgx.Tx, f *stats.Figures) error {
	var installation, bootstrap, privacy, push float64
	if err := tx.QueryRow(ctx, selectAges).Scan(&installation, &bootstrap, &privacy,
		&f.DaysAhead); err != nil {
		return err
	}
	if err := tx.QueryRow(ctx, selectArchiveFigures).Scan(&f.Quarantined, &f.DefaultRows, &push); err != nil {
		return err
	}
	f.OldestInstallation, f.StalestBootstrap = seconds(installation), seconds(bootstrap)
	f.OldestPrivacy, f.PushLag = seconds(privacy), seconds(push)
	return nil
}

func seconds(s float64) time.Duration { return time.Duration(max(s, 0) * float64(time.Second)) }
