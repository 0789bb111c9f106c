package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"storefront.internal/control/internal/installation"
	"storefront.internal/shared/ident"
	"storefront.internal/shared/pg"
)

// Installations is the part of schema control that holds installations and endpoints of providers.
type Installations struct {
	pool *pgxpool.Pool
	jobs Jobs
}

// NewInstallations returns the Installations behind a pool.
func NewInstallations(pool *pgxpool.Pool, jobs Jobs) *Installations {
	return &Installations{pool: pool, jobs: jobs}
}

// Install implements installation.Store. Installations of the same store wait for each other at its
// connection.
func (s *Installations) Install(ctx context.Context,
	n installation.NewInstallation) (out installation.Installed, err error) {
	profile, err := optionalJSON(n.Profile)
	if err != nil {
		return out, err
	}
	attribution, err := optionalJSON(n.Attribution)
	if err != nil {
		return out, err
	}
	err = pg.InTx(ctx, s.pool, func(tx pgx.Tx) error {
		if out, err = upsertConnection(ctx, tx, n, profile); err != nil {
			return err
		}
		sealed, err := n.Seal(out.ConnectionID)
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, putCredential, out.ConnectionID, sealed); err != nil {
			return err
		}
		var epoch int
		err = tx.QueryRow(ctx, putInstallation, n.InstallationID, out.ConnectionID, n.Provider, n.AppID,
			n.Scope, n.BrowserProof, attribution).
			Scan(&out.InstallationID, &epoch)
		if err != nil {
			return err
		}
		if err := putEndpoints(ctx, tx, out.ConnectionID, n.Provider, n.AppID, n.Endpoints); err != nil {
			return err
		}
		if err := tx.QueryRow(ctx, selectEndpoint, out.ConnectionID).Scan(&out.EndpointID); err != nil {
			return err
		}
		return s.jobs.EnqueueInstallations(ctx, tx, installation.Ref{ID: out.InstallationID, Epoch: epoch})
	})
	if err != nil {
		return installation.Installed{}, Translate("install", err)
	}
	return out, nil
}

// optionalJSON encodes a value, or returns nil where there is none.
func optionalJSON[T any](v T) ([]byte, error) {
	out, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	if string(out) == "null" {
		return nil, nil
	}
	return out, nil
}

const lockConnectionOf = `
SELECT connection_id
FROM control.connections
WHERE provider = $1 AND external_store_id = $2
FOR UPDATE`

const reconnect = `
UPDATE control.connections
SET state = 'active', store_profile = coalesce($2, store_profile)
WHERE connection_id = $1`

// upsertConnection inserts the connection of a store, or locks and activates the existing one.
func upsertConnection(ctx context.Context, tx pgx.Tx, n installation.NewInstallation,
	profile []byte) (out installation.Installed, err error) {
	tag, err := tx.Exec(ctx, insertConnection, n.ConnectionID, n.StoreID, n.Provider,
		n.ExternalStoreID, profile)
	if err != nil {
		return out, err
	}
	if tag.RowsAffected() == 1 {
		return installation.Installed{ConnectionID: n.ConnectionID, Created: true}, nil
	}
	if err := tx.QueryRow(ctx, lockConnectionOf, n.Provider,
		n.ExternalStoreID).Scan(&out.ConnectionID); err != nil {
		return out, err
	}
	_, err = tx.Exec(ctx, reconnect, out.ConnectionID, profile)
	return out, err
}

const putCredential = `
INSERT INTO control.credentials (connection_id, sealed)
VALUES ($1, $2)
ON CONFLICT (connection_id) DO UPDATE
SET sealed = excluded.sealed, updated_at = now()`

const putInstallation = `
INSERT INTO control.installations AS i
    (installation_id, connection_id, provider, provider_app_id, scope, browser_proof_sha256, attribution)
VALUES ($1, $2, $3, $4, $5, $6, $7)
ON CONFLICT (connection_id) DO UPDATE
SET provider_app_id = excluded.provider_app_id, scope = excluded.scope,
    browser_proof_sha256 = excluded.browser_proof_sha256, attribution = excluded.attribution,
    epoch = i.epoch + 1,
    state = 'opened', reason = NULL, attempts = 0, opened_at = now(), updated_at = now(), due_at = now()
RETURNING installation_id, epoch`

const rebindEndpoints = `
UPDATE control.endpoints
SET provider_app_id = $2
WHERE connection_id = $1 AND provider_app_id <> $2`

const insertEndpoints = `
INSERT INTO control.endpoints (endpoint_id, connection_id, provider, provider_app_id, topic)
SELECT e.id, $1, $2, $3, nullif(e.topic, '')
FROM unnest($4::text[], $5::text[]) AS e (id, topic)
ON CONFLICT (connection_id, topic) DO NOTHING`

const selectEndpoint = `
SELECT endpoint_id
FROM control.endpoints
WHERE connection_id = $1 AND topic IS NULL`

// putEndpoints inserts the endpoints that a connection lacks, and binds all of them to the app.
func putEndpoints(ctx context.Context, tx pgx.Tx, c ident.ConnectionID, provider, app string,
	all []installation.Endpoint) error {
	ids, topics := make([]string, len(all)), make([]string, len(all))
	for i, e := range all {
		ids[i], topics[i] = string(e.ID), e.Topic
	}
	if _, err := tx.Exec(ctx, rebindEndpoints, c, app); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, insertEndpoints, c, provider, app, ids, topics)
	return err
}

const selectViews = `
SELECT c.connection_id, c.store_id, c.provider, c.external_store_id, c.state,
    coalesce(i.installation_id, ''), coalesce(i.state, ''), coalesce(i.reason, ''),
    c.disabled_at, coalesce(c.disabled_by, ''), coalesce(c.disabled_reason, ''), k.refused_at
FROM control.connections c
LEFT JOIN control.installations i ON i.connection_id = c.connection_id
LEFT JOIN control.credentials k ON k.connection_id = c.connection_id
    AND k.refused_at > greatest(k.updated_at, i.caught_up_at)`

const selectView = selectViews + `
WHERE c.connection_id = $1`

// An id begins with the time at which it was made, so the order of ids is that of age. The primary key
// gives the rows in order.
const selectPage = selectViews + `
WHERE c.connection_id > $1
    AND (cardinality($2::text[]) = 0 OR c.provider = ANY($2))
    AND ($3 = '' OR c.state = $3)
    AND ($4 = '' OR c.external_store_id = $4)
ORDER BY c.connection_id
LIMIT $5`

// Connection implements installation.Store.
func (s *Installations) Connection(ctx context.Context,
	c ident.ConnectionID) (v installation.View, err error) {
	v, err = scanView(s.pool.QueryRow(ctx, selectView, c))
	if errors.Is(err, pgx.ErrNoRows) {
		return v, notFound("connection")
	}
	return v, Translate("read connection", err)
}

// Connections implements installation.Store.
func (s *Installations) Connections(ctx context.Context, q installation.Query) ([]installation.View, error) {
	providers := q.Providers
	if providers == nil {
		providers = []string{}
	}
	rows, _ := s.pool.Query(ctx, selectPage, q.After, providers, q.State, q.ExternalStoreID, q.Limit)
	views, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (installation.View, error) {
		return scanView(row)
	})
	return views, Translate("list connections", err)
}

func scanView(row pgx.Row) (v installation.View, err error) {
	var i installation.Status
	var disabledAt *time.Time
	var disabled installation.Disabled
	err = row.Scan(&v.ConnectionID, &v.StoreID, &v.Provider, &v.ExternalStoreID, &v.State, &i.ID, &i.State,
		&i.Reason, &disabledAt, &disabled.By, &disabled.Reason, &v.CredentialRefusedAt)
	if i.ID != "" {
		v.Installation = &i
	}
	if disabledAt != nil {
		disabled.At = *disabledAt
		v.Disabled = &disabled
	}
	return v, err
}
