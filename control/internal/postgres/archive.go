package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"storefront.internal/control/internal/observation"
	"storefront.internal/shared/ident"
	"storefront.internal/shared/pg"
)

// Archive is the part of schema control that holds archived observations, by partitions of a day.
type Archive struct{ pool *pgxpool.Pool }

// NewArchive returns the Archive behind a pool.
func NewArchive(pool *pgxpool.Pool) *Archive { return &Archive{pool: pool} }

const selectSnapshot = `
SELECT o.observation_id, c.provider, c.external_store_id, o.entity, o.external_id, o.revision, o.operation,
    o.content_digest, o.document
FROM control.observations o
JOIN control.connections c ON c.connection_id = o.connection_id
WHERE o.observation_id = $1 AND o.minted_at = $2 AND o.state = 'accepted' AND o.redacted_at IS NULL
    AND c.provider = $3`

// Snapshot implements observation.Archive.
func (a *Archive) Snapshot(ctx context.Context, id ident.ObservationID) (s observation.Snapshot, err error) {
	err = a.pool.QueryRow(ctx, selectSnapshot, id, mintedAt(id),
		observation.ProviderCustom).Scan(&s.ObservationID, &s.Provider,
		&s.ExternalStoreID, &s.Entity, &s.ExternalID, &s.Revision, &s.Operation, &s.ContentDigest,
		&s.Document)
	if errors.Is(err, pgx.ErrNoRows) {
		return s, notFound("observation")
	}
	return s, Translate("read snapshot", err)
}

const selectRaw = `
SELECT o.raw
FROM control.observations o
JOIN control.connections c ON c.connection_id = o.connection_id
WHERE o.observation_id = $1 AND o.minted_at = $2 AND o.state = 'accepted' AND o.redacted_at IS NULL
    AND c.provider <> $3`

// Raw implements observation.Archive.
func (a *Archive) Raw(ctx context.Context, id ident.ObservationID) (raw []byte, err error) {
	err = a.pool.QueryRow(ctx, selectRaw, id, mintedAt(id), observation.ProviderCustom).Scan(&raw)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, notFound("observation")
	}
	return raw, Translate("read raw body", err)
}

// selectQuarantine relies on the ids: they sort by the time that they contain.
const selectQuarantine = `
SELECT observation_id, entity, external_id, revision, reason, received_at
FROM control.observations
WHERE connection_id = $1 AND state = 'quarantined' AND ($2 = '' OR observation_id < $2)
ORDER BY observation_id DESC
LIMIT $3`

// Quarantine implements observation.Archive.
func (a *Archive) Quarantine(ctx context.Context, conn ident.ConnectionID, before ident.ObservationID,
	limit int) (found []observation.QuarantinedObservation, err error) {
	err = pg.InTx(ctx, pg.CustomPlans(a.pool), func(tx pgx.Tx) error {
		if err := connectionExists(ctx, tx, conn); err != nil {
			return err
		}
		rows, _ := tx.Query(ctx, selectQuarantine, conn, before, limit)
		var err error
		found, err = pgx.CollectRows(rows, pgx.RowToStructByPos[observation.QuarantinedObservation])
		return err
	})
	return found, Translate("list quarantine", err)
}

const selectQuarantined = `
SELECT c.connection_id, c.store_id, c.provider, o.entity, o.external_id, o.reason, o.raw
FROM control.observations o
JOIN control.connections c ON c.connection_id = o.connection_id
WHERE o.observation_id = $1 AND o.minted_at = $2 AND o.connection_id = $3 AND o.state = 'quarantined'`

// Quarantined implements observation.Archive.
func (a *Archive) Quarantined(ctx context.Context, conn ident.ConnectionID,
	id ident.ObservationID) (q observation.InQuarantine, err error) {
	err = a.pool.QueryRow(ctx, selectQuarantined, id, mintedAt(id), conn).Scan(&q.Source.ConnectionID,
		&q.Source.StoreID, &q.Source.Provider, &q.Key.Entity, &q.Key.ExternalID, &q.Reason, &q.Raw)
	if errors.Is(err, pgx.ErrNoRows) {
		return q, notFound("observation in the quarantine")
	}
	return q, Translate("read quarantined observation", err)
}

const ensurePartitions = `SELECT control.ensure_partitions($1)`

// EnsurePartitions implements jobs.Archive.
func (a *Archive) EnsurePartitions(ctx context.Context, days int) (ahead int, err error) {
	err = a.pool.QueryRow(ctx, ensurePartitions, days).Scan(&ahead)
	return ahead, Translate("ensure partitions", err)
}

const dropPartition = `SELECT control.drop_partition($1, $2::date)`

// DropPartitions implements jobs.Archive. Each partition is dropped in a transaction of its own.
func (a *Archive) DropPartitions(ctx context.Context, before time.Time) (dropped int, inUse bool, err error) {
	for _, table := range []string{"observations", "webhook_deliveries"} {
		for more := true; more; {
			err := a.pool.QueryRow(ctx, dropPartition, table, before.UTC().Format(time.DateOnly)).Scan(&more)
			switch {
			case pg.SQLState(err) == pg.LockNotAvailable: // a transaction reads it
				inUse, more = true, false
			case err != nil:
				return dropped, inUse, Translate("drop partition", err)
			case more:
				dropped++
			}
		}
	}
	return dropped, inUse, nil
}
