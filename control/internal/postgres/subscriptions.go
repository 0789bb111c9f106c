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
func (s *Installations) Endpoints(ctx context.Context, c ident.ConnectionID,
	wanted []installation.Endpoint) (all []installation.Endpoint, err error) {
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
		rows, _ := tx.Query(ctx, selectEndpoints, c)
		all, err = pgx.CollectRows(rows, pgx.RowToStructByPos[installation.Endpoint])
		return err
	})
	return all, Translate("read endpoints", err)
}

const (
	selectSecretFingerprint = `SELECT coalesce(keyed, '') FROM control.installations WHERE connection_id = $1`
	setSecretFingerprint    = `UPDATE control.installations SET keyed = $2 WHERE connection_id = $1`
)

// SecretFingerprint implements installation.EndpointStore.
func (s *Installations) SecretFingerprint(ctx context.Context,
	c ident.ConnectionID) (dirtySeq string, err error) {
	err = s.pool.QueryRow(ctx, selectSecretFingerprint, c).Scan(&dirtySeq)
	return dirtySeq, Translate("read fingerprint of subscriptions", err)
}

// SetSecretFingerprint implements installation.EndpointStore.
func (s *Installations) SetSecretFingerprint(ctx context.Context, c ident.ConnectionID,
	dirtySeq string) error {
	_, err := s.pool.Exec(ctx, setSecretFingerprint, c, dirtySeq)
	return Translate("store fingerprint of subscriptions", err)
}

// A shop is due for a check of its subscriptions once in each interval, from its place within it on.
const takeUncheckedShops = `
UPDATE control.installations i
SET swept_at = now()
FROM (
    SELECT s.installation_id
    FROM control.installations s
    JOIN control.connections c ON c.connection_id = s.connection_id
    WHERE s.state = 'completed' AND c.state = 'active' AND c.disabled_at IS NULL
        AND (s.swept_at IS NULL OR s.swept_at < date_bin($1::interval, now(),
            'epoch'::timestamptz + $1::interval * ` + placeInInterval + `))
    ORDER BY s.swept_at NULLS FIRST
    LIMIT $2
    FOR NO KEY UPDATE OF s SKIP LOCKED
) AS due
WHERE i.installation_id = due.installation_id
RETURNING i.connection_id`

// RequestSubscriptionChecks enqueues the check of the subscriptions of every installed shop that is due.
func (s *Installations) RequestSubscriptionChecks(ctx context.Context, every time.Duration) error {
	return inPages(ctx, s.pool, "request subscription checks", func(tx pgx.Tx) (int, error) {
		rows, _ := tx.Query(ctx, takeUncheckedShops, every, periodicPage)
		due, err := pgx.CollectRows(rows, pgx.RowTo[ident.ConnectionID])
		if err != nil {
			return 0, err
		}
		return len(due), s.jobs.EnqueueSubscriptionChecks(ctx, tx, due...)
	})
}

const selectAppID = `SELECT provider_app_id FROM control.installations WHERE connection_id = $1`

// AppID implements installation.SweepStore.
func (s *Installations) AppID(ctx context.Context, c ident.ConnectionID) (app string, err error) {
	err = s.pool.QueryRow(ctx, selectAppID, c).Scan(&app)
	if errors.Is(err, pgx.ErrNoRows) {
		return "", notFound("installation")
	}
	return app, Translate("read app of installation", err)
}
