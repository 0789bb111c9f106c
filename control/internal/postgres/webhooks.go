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

const insertDelivery = `
INSERT INTO control.webhook_deliveries (delivery_id, minted_at, connection_id, endpoint_id, topic_hint, provider_delivery_id, triggered_at, raw)
VALUES ($1, $2, $3, $4, nullif($5, ''), nullif($6, ''), nullif($7, ''), $8)`

// A minute is fine enough, and keeps the deliveries of a shop from waiting for each other.
const hearShop = `
UPDATE control.installations
SET heard_at = now()
WHERE connection_id = $1 AND heard_at < now() - interval '1 minute'`

// markEntity locks the entity's row, as the last transaction of a fetch does.
const markEntity = `
INSERT INTO control.entities AS e (connection_id, entity, external_id, dirty_seq)
VALUES ($1, $2, $3, 1)
ON CONFLICT (connection_id, entity, external_id) DO UPDATE
SET dirty_seq = e.dirty_seq + 1`

// Deliver implements webhook.Store.
func (w *Webhooks) Deliver(ctx context.Context, d *webhook.Delivery) error {
	minted, _ := ident.MintedAt(string(d.ID))
	err := pg.InTx(ctx, w.pool, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, insertDelivery, d.ID, minted, d.Endpoint.ConnectionID, d.Endpoint.ID,
			hint(d.Request.Topic), hint(d.Request.DeliveryID), hint(d.Request.TriggeredAt), d.Request.Body)
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, hearShop, d.Endpoint.ConnectionID); err != nil {
			return err
		}
		err = w.setOff(ctx, tx, d)
		crashpoint.Hit(crashpoint.WebhookBeforeCommit)
		return err
	})
	if err == nil {
		crashpoint.Hit(crashpoint.WebhookAfterCommit)
	}
	return Translate("archive delivery", err)
}

// setOff enqueues behind the mark: under the lock of the entity's row, the job that would take the mark is either running
// and sees it, or completed and out of the way.
func (w *Webhooks) setOff(ctx context.Context, tx pgx.Tx, d *webhook.Delivery) error {
	c := d.Endpoint.ConnectionID
	switch d.Kind {
	case provider.Changed, provider.Deleted:
		if _, err := tx.Exec(ctx, markEntity, c, d.Key.Entity, d.Key.ExternalID); err != nil {
			return err
		}
		return w.jobs.EnqueueRefresh(ctx, tx, c, d.Key)
	case provider.Uninstalled, provider.Suspended, provider.Resumed:
		return w.jobs.EnqueueShopCheck(ctx, tx, c, d.Kind == provider.Uninstalled)
	case provider.Unclear:
		return w.jobs.EnqueueCatchUp(ctx, tx, c)
	default: // privacy requests and what is of no interest: the archive has them
		return nil
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
