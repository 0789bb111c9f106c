package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"storefront.internal/control/internal/installation"
	"storefront.internal/shared/ident"
)

// A second of tolerance: River may run a snoozed job slightly early.
const selectSaga = `
SELECT connection_id, provider, provider_app_id, state, attempts, now() - opened_at,
    due_at - now() - interval '1 second'
FROM control.installations
WHERE installation_id = $1 AND epoch = $2`

// Saga implements installation.SagaStore.
func (s *Installations) Saga(ctx context.Context, r installation.Ref) (saga installation.Saga, err error) {
	saga.Ref = r
	err = s.pool.QueryRow(ctx, selectSaga, r.ID, r.Epoch).
		Scan(&saga.ConnectionID, &saga.Provider, &saga.AppID, &saga.State, &saga.Attempts,
			&saga.Age, &saga.DueIn)
	if errors.Is(err, pgx.ErrNoRows) {
		return saga, notFound("installation")
	}
	return saga, Translate("read installation", err)
}

// sameSaga is the compare of every compare-and-set on a saga.
const sameSaga = `
WHERE installation_id = $1 AND epoch = $2 AND state = $3`

const sagaIsCurrent = `SELECT EXISTS (SELECT FROM control.installations ` + sameSaga + `)`

// Current implements installation.SagaStore.
func (s *Installations) Current(ctx context.Context, saga installation.Saga) (current bool, err error) {
	err = s.pool.QueryRow(ctx, sagaIsCurrent, saga.ID, saga.Epoch, saga.State).Scan(&current)
	return current, Translate("read installation", err)
}

const advanceSaga = `
UPDATE control.installations
SET state = $4, reason = NULL, attempts = 0, due_at = now(), updated_at = now(),
    swept_at = CASE WHEN $4 = 'completed' THEN now() ELSE swept_at END` + sameSaga

// Advance implements installation.SagaStore.
func (s *Installations) Advance(ctx context.Context, saga installation.Saga,
	to installation.State) (bool, error) {
	tag, err := s.pool.Exec(ctx, advanceSaga, saga.ID, saga.Epoch, saga.State, to)
	return tag.RowsAffected() == 1, Translate("advance installation", err)
}

const failSaga = `
UPDATE control.installations
SET state = CASE WHEN $6 THEN 'failed' ELSE state END, reason = $4, attempts = attempts + 1,
    due_at = now() + $5::interval, updated_at = now()` + sameSaga

// Fail implements installation.SagaStore.
func (s *Installations) Fail(ctx context.Context, saga installation.Saga,
	f installation.Failure) (bool, error) {
	tag, err := s.pool.Exec(ctx, failSaga, saga.ID, saga.Epoch, saga.State, f.Reason, f.Delay, f.Final)
	return tag.RowsAffected() == 1, Translate("fail installation", err)
}

const selectUnfinishedSagas = `
SELECT i.installation_id, i.epoch
FROM control.installations i
JOIN control.connections c ON c.connection_id = i.connection_id
WHERE i.state <> 'completed' AND c.disabled_at IS NULL AND i.installation_id > $1
ORDER BY i.installation_id
LIMIT $2`

// RequeueInstallations gives each saga that is not completed its job, if it has none.
func (s *Installations) RequeueInstallations(ctx context.Context) error {
	var last ident.InstallationID
	return inPages(ctx, s.pool, "requeue installations", func(tx pgx.Tx) (int, error) {
		rows, _ := tx.Query(ctx, selectUnfinishedSagas, last, periodicPage)
		sagas, err := pgx.CollectRows(rows, pgx.RowToStructByPos[installation.Ref])
		if err != nil || len(sagas) == 0 {
			return 0, err
		}
		last = sagas[len(sagas)-1].ID
		return len(sagas), s.jobs.EnqueueInstallations(ctx, tx, sagas...)
	})
}

// A failed installation gets another attempt at once when the connection is wanted again.
const makeSagaDue = `
UPDATE control.installations
SET due_at = now()
WHERE connection_id = $1 AND state = 'failed'
RETURNING installation_id, epoch`

func reviveInstallation(ctx context.Context, tx pgx.Tx, jobs Jobs, c ident.ConnectionID) error {
	var saga installation.Ref
	err := tx.QueryRow(ctx, makeSagaDue, c).Scan(&saga.ID, &saga.Epoch)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	if err != nil {
		return err
	}
	return jobs.WakeInstallation(ctx, tx, saga)
}
