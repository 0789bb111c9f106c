package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"storefront.internal/control/internal/provider"
	"storefront.internal/control/internal/webhook"
	"storefront.internal/shared/failpoint"
	"storefront.internal/shared/ident"
	"storefront.internal/shared/pg"
)

// Webhooks is the part of schema control that holds webhook events.
type Webhooks struct {
	pool *pgxpool.Pool
	jobs Jobs
}

// NewWebhooks returns Webhooks.
func NewWebhooks(pool *pgxpool.Pool, jobs Jobs) *Webhooks {
	return &Webhooks{pool: pool, jobs: jobs}
}

const selectWebhookEndpoint = `
SELECT e.endpoint_id, e.connection_id, e.provider, e.provider_app_id, coalesce(e.topic, ''),
    c.external_store_id, c.disabled_at IS NOT NULL
FROM control.endpoints e
JOIN control.connections c ON c.connection_id = e.connection_id
WHERE e.endpoint_id = $1`

// Endpoint implements webhook.Store.
func (w *Webhooks) Endpoint(ctx context.Context, id string) (e webhook.Endpoint, err error) {
	err = w.pool.QueryRow(ctx, selectWebhookEndpoint, safeHeader(id)).
		Scan(&e.ID, &e.ConnectionID, &e.App.Provider, &e.App.ID, &e.Topic, &e.ExternalStoreID,
			&e.Disabled)
	if errors.Is(err, pgx.ErrNoRows) {
		return e, notFound("endpoint")
	}
	return e, Translate("read endpoint", err)
}

// heard_at has a resolution of a minute, so that the webhooks of a shop do not wait for each other at its
// row.
const insertWebhookEvent = `
WITH heard AS (
    UPDATE control.installations
    SET heard_at = now()
    WHERE connection_id = $3 AND heard_at < now() - interval '1 minute'
)
INSERT INTO control.webhook_deliveries (delivery_id, minted_at, connection_id, endpoint_id, topic_hint,
    provider_delivery_id, triggered_at, raw)
VALUES ($1, $2, $3, $4, nullif($5, ''), nullif($6, ''), nullif($7, ''), $8)`

// markEntityDirty locks the entity's row, as ApplyFetch does. An entity that is still marked at sweep_at gets
// another job.
const markEntityDirty = `
INSERT INTO control.entities AS e (connection_id, entity, external_id, dirty_seq, sweep_at)
VALUES ($1, $2, $3, 1, now() + interval '10 minutes')
ON CONFLICT (connection_id, entity, external_id) DO UPDATE
SET dirty_seq = e.dirty_seq + 1, sweep_at = excluded.sweep_at
RETURNING redacted_at IS NOT NULL`

const insertPrivacyRequest = `
INSERT INTO control.privacy_requests (request_id, connection_id, kind, orders)
VALUES ($1, $2, $3, $4)`

// SaveEvent implements webhook.Store. The body of an event about a redacted order is not kept either.
func (w *Webhooks) SaveEvent(ctx context.Context, d *webhook.Event) error {
	err := w.saveEvent(ctx, d)
	if err == nil {
		failpoint.Hit(failpoint.WebhookAfterCommit)
	}
	return Translate("archive webhook event", err)
}

// saveEvent archives an event that calls for nothing with one statement, which is its own transaction.
func (w *Webhooks) saveEvent(ctx context.Context, d *webhook.Event) error {
	if d.Kind == provider.Ignored {
		failpoint.Hit(failpoint.WebhookBeforeCommit)
		return archiveEvent(ctx, w.pool, d, false)
	}
	return pg.InTx(ctx, w.pool, func(tx pgx.Tx) error {
		redacted, err := w.enqueueFollowUp(ctx, tx, d)
		if err == nil {
			err = archiveEvent(ctx, tx, d, redacted)
		}
		failpoint.Hit(failpoint.WebhookBeforeCommit)
		return err
	})
}

// execer is a pool or a transaction.
type execer interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}

func archiveEvent(ctx context.Context, db execer, d *webhook.Event, redacted bool) error {
	minted, _ := ident.MintedAt(string(d.ID))
	body := d.Body
	if redacted || body == nil {
		body = []byte{}
	}
	_, err := db.Exec(ctx, insertWebhookEvent, d.ID, minted, d.Endpoint.ConnectionID, d.Endpoint.ID,
		safeHeader(d.Request.Topic), safeHeader(d.Request.ProviderEventID),
		safeHeader(d.Request.TriggeredAt), body)
	return err
}

// enqueueFollowUp enqueues what an event calls for. A refresh is enqueued under the lock of the entity's row:
// the entity's job either runs and will see the mark, or has completed. redacted says that the entity's data
// may not be kept. Of a disabled connection, entities are only marked, and enabling it catches up.
func (w *Webhooks) enqueueFollowUp(ctx context.Context, tx pgx.Tx,
	d *webhook.Event) (redacted bool, err error) {
	c := d.Endpoint.ConnectionID
	switch d.Kind {
	case provider.Changed, provider.Deleted:
		if err := tx.QueryRow(ctx, markEntityDirty, c, d.Key.Entity,
			d.Key.ExternalID).Scan(&redacted); err != nil || redacted || d.Endpoint.Disabled {
			return redacted, err
		}
		return false, w.jobs.EnqueueRefresh(ctx, tx, c, d.Key)
	case provider.Uninstalled, provider.Suspended, provider.Resumed:
		return false, w.jobs.EnqueueShopCheck(ctx, tx, d.Kind == provider.Uninstalled, c)
	case provider.Unspecified:
		if d.Endpoint.Disabled {
			return false, nil
		}
		return false, w.jobs.EnqueueCatchUp(ctx, tx, c)
	case provider.RedactCustomer, provider.RedactShop, provider.DataRequest:
		if _, err := tx.Exec(ctx, insertPrivacyRequest, d.ID, c, d.Kind,
			append([]string{}, d.Orders...)); err != nil {
			return false, err
		}
		return false, w.jobs.EnqueuePrivacyRequest(ctx, tx, d.ID)
	default: // nothing follows from it
		return false, nil
	}
}

// maxHeader bounds the characters that are kept of a header.
const maxHeader = 255

func safeHeader(s string) string { return pg.SafeText(s, maxHeader) }
