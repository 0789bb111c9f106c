package postgres

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"storefront.internal/control/internal/observation"
	"storefront.internal/control/internal/provider"
	"storefront.internal/control/internal/webhook"
	"storefront.internal/shared/crashpoint"
	"storefront.internal/shared/ident"
	"storefront.internal/shared/pg"
)

// WebhookJobs enqueues what a notification calls for, in its transaction.
type WebhookJobs interface {
	EnqueueRefresh(ctx context.Context, tx pgx.Tx, c ident.ConnectionID, key observation.Key) error
	EnqueueShopCheck(ctx context.Context, tx pgx.Tx, c ident.ConnectionID, uninstalled bool) error
	EnqueueCatchUp(ctx context.Context, tx pgx.Tx, c ident.ConnectionID) error
	EnqueuePrivacyRequest(ctx context.Context, tx pgx.Tx, id ident.DeliveryID) error
}

// Webhooks is the part of schema control where notifications arrive.
type Webhooks struct {
	pool *pgxpool.Pool
	jobs WebhookJobs
}

// NewWebhooks returns Webhooks.
func NewWebhooks(pool *pgxpool.Pool, jobs WebhookJobs) *Webhooks {
	return &Webhooks{pool: pool, jobs: jobs}
}

const selectWebhookEndpoint = `
SELECT e.endpoint_id, e.connection_id, e.provider, e.provider_app_id, coalesce(e.topic, ''), c.external_store_id
FROM control.endpoints e
JOIN control.connections c ON c.connection_id = e.connection_id
WHERE e.endpoint_id = $1`

// Endpoint implements webhook.Store.
func (w *Webhooks) Endpoint(ctx context.Context, id string) (e webhook.Endpoint, err error) {
	err = w.pool.QueryRow(ctx, selectWebhookEndpoint, hint(id)).
		Scan(&e.ID, &e.ConnectionID, &e.App.Provider, &e.App.ID, &e.Topic, &e.ExternalStoreID)
	if errors.Is(err, pgx.ErrNoRows) {
		return e, notFound("endpoint")
	}
	return e, Translate("read endpoint", err)
}

// The shop is heard of to a minute: that is fine enough, and keeps its deliveries from waiting for each other.
const insertDelivery = `
WITH heard AS (
    UPDATE control.installations
    SET heard_at = now()
    WHERE connection_id = $3 AND heard_at < now() - interval '1 minute'
)
INSERT INTO control.webhook_deliveries (delivery_id, minted_at, connection_id, endpoint_id, topic_hint, provider_delivery_id, triggered_at, raw)
VALUES ($1, $2, $3, $4, nullif($5, ''), nullif($6, ''), nullif($7, ''), $8)`

// markEntity locks the entity's row, as the last transaction of a fetch does.
const markEntity = `
INSERT INTO control.entities AS e (connection_id, entity, external_id, dirty_seq)
VALUES ($1, $2, $3, 1)
ON CONFLICT (connection_id, entity, external_id) DO UPDATE
SET dirty_seq = e.dirty_seq + 1
RETURNING redacted_at IS NOT NULL`

const insertPrivacyRequest = `
INSERT INTO control.privacy_requests (request_id, connection_id, kind, orders)
VALUES ($1, $2, $3, $4)`

// Deliver implements webhook.Store. Of a notification of a redacted order nothing but its arrival is kept.
func (w *Webhooks) Deliver(ctx context.Context, d *webhook.Delivery) error {
	minted, _ := ident.MintedAt(string(d.ID))
	err := pg.InTx(ctx, w.pool, func(tx pgx.Tx) error {
		redacted, err := w.setOff(ctx, tx, d)
		if err != nil {
			return err
		}
		body := d.Request.Body
		if redacted {
			body = []byte{}
		}
		_, err = tx.Exec(ctx, insertDelivery, d.ID, minted, d.Endpoint.ConnectionID, d.Endpoint.ID,
			hint(d.Request.Topic), hint(d.Request.DeliveryID), hint(d.Request.TriggeredAt), body)
		crashpoint.Hit(crashpoint.WebhookBeforeCommit)
		return err
	})
	if err == nil {
		crashpoint.Hit(crashpoint.WebhookAfterCommit)
	}
	return Translate("archive delivery", err)
}

// setOff enqueues behind the mark: under the lock of the entity's row, the job that would take the mark is either running
// and sees it, or completed and out of the way. redacted says that the entity's data may not be kept.
func (w *Webhooks) setOff(ctx context.Context, tx pgx.Tx, d *webhook.Delivery) (redacted bool, err error) {
	c := d.Endpoint.ConnectionID
	switch d.Kind {
	case provider.Changed, provider.Deleted:
		if err := tx.QueryRow(ctx, markEntity, c, d.Key.Entity, d.Key.ExternalID).Scan(&redacted); err != nil || redacted {
			return redacted, err
		}
		return false, w.jobs.EnqueueRefresh(ctx, tx, c, d.Key)
	case provider.Uninstalled, provider.Suspended, provider.Resumed:
		return false, w.jobs.EnqueueShopCheck(ctx, tx, c, d.Kind == provider.Uninstalled)
	case provider.Unclear:
		return false, w.jobs.EnqueueCatchUp(ctx, tx, c)
	case provider.RedactCustomer, provider.RedactStore, provider.DataRequest:
		if _, err := tx.Exec(ctx, insertPrivacyRequest, d.ID, c, d.Kind, append([]string{}, d.Orders...)); err != nil {
			return false, err
		}
		return false, w.jobs.EnqueuePrivacyRequest(ctx, tx, d.ID)
	default: // what is of no interest: the archive has it
		return false, nil
	}
}

const selectSilence = `
SELECT i.provider, extract(epoch FROM max(now() - greatest(i.heard_at, i.opened_at)))::float8,
    count(*) FILTER (WHERE greatest(i.heard_at, i.opened_at) < now() - $1::interval)
FROM control.installations i
JOIN control.connections c ON c.connection_id = i.connection_id
WHERE c.state = 'active' AND i.state = 'completed'
GROUP BY i.provider`

// Silences implements webhook.SilenceStore.
func (w *Webhooks) Silences(ctx context.Context, after time.Duration) ([]webhook.Silence, error) {
	rows, err := w.pool.Query(ctx, selectSilence, after)
	if err != nil {
		return nil, Translate("read silences", err)
	}
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (s webhook.Silence, err error) {
		var seconds float64
		err = row.Scan(&s.Provider, &seconds, &s.Silent)
		s.Longest = time.Duration(seconds * float64(time.Second))
		return s, err
	})
	return all, Translate("read silences", err)
}

// longestHint bounds what is kept of a header, in bytes.
const longestHint = 255

// hint makes text of a header one that a column takes.
func hint(s string) string {
	s = strings.ReplaceAll(strings.ToValidUTF8(s, ""), "\x00", "")
	if len(s) > longestHint {
		s = strings.ToValidUTF8(s[:longestHint], "")
	}
	return s
}
