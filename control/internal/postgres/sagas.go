package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"storefront.internal/control/internal/installation"
	"storefront.internal/shared/ident"
	"storefront.internal/shared/pg"
)

// A second of tolerance: a job that comes back when an attempt is due must not miss it for a clock's sake.
const acquireSaga = `
UPDATE control.installations
SET lease = $3, lease_until = now() + $4::interval, updated_at = now()
WHERE installation_id = $1 AND epoch = $2 AND state NOT IN ('completed', 'failed')
    AND due_at <= now() + interval '1 second' AND (lease_until IS NULL OR lease_until < now())
RETURNING connection_id, provider, provider_app_id, state, attempts, now() - opened_at`

// Acquire implements installation.SagaStore.
func (s *Installations) Acquire(ctx context.Context, l installation.Lease, lasts time.Duration) (saga installation.Saga, held bool, err error) {
	err = s.pool.QueryRow(ctx, acquireSaga, l.ID, l.Epoch, l.Token, lasts).
		Scan(&saga.ConnectionID, &saga.Provider, &saga.AppID, &saga.State, &saga.Attempts, &saga.Age)
	if errors.Is(err, pgx.ErrNoRows) {
		return saga, false, nil
	}
	return saga, err == nil, Translate("acquire saga", err)
}

// holds is the condition under which a runner may change a saga.
const holds = `
WHERE installation_id = $1 AND epoch = $2 AND lease = $3 AND lease_until >= now()`

const renewSaga = `
UPDATE control.installations
SET lease_until = now() + $4::interval` + holds

// Renew implements installation.SagaStore.
func (s *Installations) Renew(ctx context.Context, l installation.Lease, lasts time.Duration) (bool, error) {
	return s.heldBy(ctx, "renew lease", renewSaga, l, lasts)
}

const advanceSaga = `
UPDATE control.installations
SET state = $4, reason = NULL, attempts = 0, updated_at = now(),
    lease = CASE WHEN $4 = 'completed' THEN NULL ELSE lease END,
    lease_until = CASE WHEN $4 = 'completed' THEN NULL ELSE lease_until END,
    swept_at = CASE WHEN $4 = 'completed' THEN now() ELSE swept_at END` + holds

// Advance implements installation.SagaStore.
func (s *Installations) Advance(ctx context.Context, l installation.Lease, to installation.State) (bool, error) {
	return s.heldBy(ctx, "advance saga", advanceSaga, l, to)
}

const failSaga = `
UPDATE control.installations
SET state = CASE WHEN $6 THEN 'failed' ELSE state END, reason = $4, attempts = attempts + 1, updated_at = now(),
    due_at = now() + $5::interval, lease = NULL, lease_until = NULL` + holds

// Fail implements installation.SagaStore.
func (s *Installations) Fail(ctx context.Context, l installation.Lease, f installation.Failure) (bool, error) {
	return s.heldBy(ctx, "fail saga", failSaga, l, f.Reason, f.Wait, f.Final)
}

func (s *Installations) heldBy(ctx context.Context, doing, sql string, l installation.Lease, args ...any) (bool, error) {
	tag, err := s.pool.Exec(ctx, sql, append([]any{l.ID, l.Epoch, l.Token}, args...)...)
	return tag.RowsAffected() == 1, Translate(doing, err)
}

const selectEndpoints = `
SELECT endpoint_id, coalesce(topic, '')
FROM control.endpoints
WHERE connection_id = $1
ORDER BY topic NULLS FIRST`

const selectApp = `
SELECT provider, provider_app_id
FROM control.installations
WHERE connection_id = $1
FOR SHARE`

// Endpoints implements installation.EndpointStore.
func (s *Installations) Endpoints(ctx context.Context, c ident.ConnectionID, wanted []installation.Endpoint) (all []installation.Endpoint, err error) {
	err = pg.InTx(ctx, s.pool, func(tx pgx.Tx) error {
		var provider, app string
		err := tx.QueryRow(ctx, selectApp, c).Scan(&provider, &app)
		if errors.Is(err, pgx.ErrNoRows) {
			return notFound("installation")
		}
		if err != nil {
			return err
		}
		if err := putEndpoints(ctx, tx, c, provider, app, wanted); err != nil {
			return err
		}
		rows, err := tx.Query(ctx, selectEndpoints, c)
		if err != nil {
			return err
		}
		all, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (e installation.Endpoint, err error) {
			err = row.Scan(&e.ID, &e.Topic)
			return e, err
		})
		return err
	})
	return all, Translate("read endpoints", err)
}

const selectStuckSagas = `
SELECT installation_id, epoch
FROM control.installations
WHERE state NOT IN ('completed', 'failed') AND due_at < now() - $1::interval
    AND (lease_until IS NULL OR lease_until < now())
ORDER BY due_at
LIMIT 200
FOR UPDATE SKIP LOCKED`

const wakeSaga = `
UPDATE control.installations
SET due_at = now()
WHERE installation_id = $1`

// A store that is closed has to come back first. The reason stays until an attempt succeeds.
const reviveSagas = `
UPDATE control.installations i
SET state = 'opened', attempts = $1, due_at = now() - $2::interval, updated_at = now()
FROM control.connections c, control.credentials k
WHERE i.state = 'failed' AND i.due_at <= now() AND c.connection_id = i.connection_id AND c.state = 'active'
    AND k.connection_id = i.connection_id`

// WakeSagas enqueues sagas that nobody takes on though their next attempt was due that long ago: their runner died, or
// they failed and have rested. It returns how many.
func (s *Installations) WakeSagas(ctx context.Context, overdue time.Duration) (n int, err error) {
	type stuck struct {
		id    ident.InstallationID
		epoch int
	}
	err = pg.InTx(ctx, s.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, reviveSagas, installation.LastAttempt, overdue+time.Second); err != nil {
			return err
		}
		rows, err := tx.Query(ctx, selectStuckSagas, overdue)
		if err != nil {
			return err
		}
		all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (i stuck, err error) {
			err = row.Scan(&i.id, &i.epoch)
			return i, err
		})
		if err != nil {
			return err
		}
		for _, i := range all {
			if _, err := tx.Exec(ctx, wakeSaga, i.id); err != nil {
				return err
			}
			if err := s.jobs.EnqueueSaga(ctx, tx, i.id, i.epoch); err != nil {
				return err
			}
		}
		n = len(all)
		return nil
	})
	return n, Translate("wake sagas", err)
}

const (
	selectKeyed = `SELECT coalesce(keyed, '') FROM control.installations WHERE connection_id = $1`
	setKeyed    = `UPDATE control.installations SET keyed = $2 WHERE connection_id = $1`
)

// Keyed implements installation.EndpointStore.
func (s *Installations) Keyed(ctx context.Context, c ident.ConnectionID) (mark string, err error) {
	err = s.pool.QueryRow(ctx, selectKeyed, c).Scan(&mark)
	return mark, Translate("read secret of subscriptions", err)
}

// SetKeyed implements installation.EndpointStore.
func (s *Installations) SetKeyed(ctx context.Context, c ident.ConnectionID, mark string) error {
	_, err := s.pool.Exec(ctx, setKeyed, c, mark)
	return Translate("note secret of subscriptions", err)
}

const takeSweeps = `
UPDATE control.installations i
SET swept_at = now()
FROM (
    SELECT s.installation_id
    FROM control.installations s
    JOIN control.connections c ON c.connection_id = s.connection_id
    WHERE s.state = 'completed' AND c.state = 'active' AND (s.swept_at IS NULL OR s.swept_at < now() - $1::interval)
    ORDER BY s.swept_at NULLS FIRST
    LIMIT $2
    FOR UPDATE OF s SKIP LOCKED
) AS due
WHERE i.installation_id = due.installation_id
RETURNING i.connection_id, i.provider, i.provider_app_id`

// TakeSweeps implements installation.SweepStore.
func (s *Installations) TakeSweeps(ctx context.Context, every time.Duration, most int) ([]installation.Sweep, error) {
	rows, err := s.pool.Query(ctx, takeSweeps, every, most)
	if err != nil {
		return nil, Translate("take sweeps", err)
	}
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (w installation.Sweep, err error) {
		err = row.Scan(&w.ConnectionID, &w.Provider, &w.AppID)
		return w, err
	})
	return all, Translate("take sweeps", err)
}
