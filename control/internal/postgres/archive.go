package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"storefront.internal/control/internal/observation"
	"storefront.internal/shared/ident"
	"storefront.internal/shared/pg"
)

const selectSnapshot = `
SELECT o.observation_id, c.provider, c.external_store_id, o.entity, o.external_id, o.revision, o.operation, o.content_digest, o.document
FROM control.observations o
JOIN control.connections c ON c.connection_id = o.connection_id
WHERE o.observation_id = $1 AND o.minted_at = $2 AND o.state = 'accepted' AND o.redacted_at IS NULL AND c.provider = $3`

// Snapshot reads operation 10.
func (c *Catalog) Snapshot(ctx context.Context, id ident.ObservationID) (s observation.Snapshot, err error) {
	err = c.pool.QueryRow(ctx, selectSnapshot, id, mintedAt(id), observation.ProviderCustom).Scan(&s.ObservationID, &s.Provider,
		&s.ExternalStoreID, &s.Entity, &s.ExternalID, &s.Revision, &s.Operation, &s.ContentDigest, &s.Document)
	if errors.Is(err, pgx.ErrNoRows) {
		return s, notFound("observation")
	}
	return s, Translate("read snapshot", err)
}

const selectRaw = `
SELECT o.raw
FROM control.observations o
JOIN control.connections c ON c.connection_id = o.connection_id
WHERE o.observation_id = $1 AND o.minted_at = $2 AND o.state = 'accepted' AND o.redacted_at IS NULL AND c.provider <> $3`

// Raw reads operation 11.
func (c *Catalog) Raw(ctx context.Context, id ident.ObservationID) (raw []byte, err error) {
	err = c.pool.QueryRow(ctx, selectRaw, id, mintedAt(id), observation.ProviderCustom).Scan(&raw)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, notFound("observation")
	}
	return raw, Translate("read raw body", err)
}

// selectQuarantine relies on ids that sort by the time that they carry.
const selectQuarantine = `
SELECT observation_id, entity, external_id, revision, reason, received_at
FROM control.observations
WHERE connection_id = $1 AND state = 'quarantined' AND ($2 = '' OR observation_id < $2)
ORDER BY observation_id DESC
LIMIT $3`

// Quarantine reads a page of E8.
func (c *Catalog) Quarantine(ctx context.Context, conn ident.ConnectionID, before ident.ObservationID, limit int) (held []observation.Held, err error) {
	err = pg.InTx(ctx, fresh{c.pool}, func(tx pgx.Tx) error {
		var exists bool
		if err := tx.QueryRow(ctx, connectionExists, conn).Scan(&exists); err != nil {
			return err
		}
		if !exists {
			return notFound("connection")
		}
		rows, err := tx.Query(ctx, selectQuarantine, conn, before, limit)
		if err != nil {
			return err
		}
		held, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (h observation.Held, err error) {
			err = row.Scan(&h.ObservationID, &h.Entity, &h.ExternalID, &h.Revision, &h.Reason, &h.At)
			return h, err
		})
		return err
	})
	return held, Translate("list quarantine", err)
}

const selectQuarantined = `
SELECT c.connection_id, c.store_id, c.provider, o.raw
FROM control.observations o
JOIN control.connections c ON c.connection_id = o.connection_id
WHERE o.observation_id = $1 AND o.minted_at = $2 AND o.connection_id = $3 AND o.state = 'quarantined' AND c.provider = $4`

// Quarantined reads what E8 replays. Only what a custom connector sent is an element that can be read again.
func (c *Catalog) Quarantined(ctx context.Context, conn ident.ConnectionID, id ident.ObservationID) (s observation.Source, sent []byte, err error) {
	err = c.pool.QueryRow(ctx, selectQuarantined, id, mintedAt(id), conn, observation.ProviderCustom).
		Scan(&s.ConnectionID, &s.StoreID, &s.Provider, &sent)
	if errors.Is(err, pgx.ErrNoRows) {
		return s, nil, notFound("observation in the quarantine")
	}
	return s, sent, Translate("read quarantined observation", err)
}

const ensurePartitions = `SELECT control.ensure_partitions($1)`

// EnsurePartitions makes the coming days of the archive and returns how many whole days ahead there are.
func (c *Catalog) EnsurePartitions(ctx context.Context, days int) (ahead int, err error) {
	err = c.pool.QueryRow(ctx, ensurePartitions, days).Scan(&ahead)
	return ahead, Translate("ensure partitions", err)
}

const dropPartitions = `SELECT control.drop_partitions($1::date)`

// DropPartitions ends the days of the archive before the given one and returns how many went.
func (c *Catalog) DropPartitions(ctx context.Context, before time.Time) (dropped int, err error) {
	err = c.pool.QueryRow(ctx, dropPartitions, before.UTC().Format(time.DateOnly)).Scan(&dropped)
	return dropped, Translate("drop partitions", err)
}

// selectFigures counts no further than it must, so a flooded quarantine costs no more than a full one.
const selectFigures = `
SELECT (SELECT count(*) FROM (SELECT FROM control.observations WHERE state = 'quarantined' LIMIT 10000) q),
       (SELECT count(*) FROM (SELECT minted_at FROM control.observations_default LIMIT 1000) d)
           + (SELECT count(*) FROM (SELECT minted_at FROM control.webhook_deliveries_default LIMIT 1000) w),
       coalesce((SELECT extract(epoch FROM now() - min(created_at))::float8
                 FROM control.river_job
                 WHERE kind = 'item_push' AND state IN ('available', 'pending', 'retryable', 'running', 'scheduled')), 0)`

// Figures reads what is watched. The kind of job is package jobs'.
func (c *Catalog) Figures(ctx context.Context) (f observation.Figures, err error) {
	var lag float64
	err = c.pool.QueryRow(ctx, selectFigures).Scan(&f.Quarantined, &f.Strays, &lag)
	f.PushLag = time.Duration(max(lag, 0) * float64(time.Second))
	return f, Translate("read figures", err)
}
