package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"storefront.internal/control/internal/observation"
	"storefront.internal/control/internal/privacy"
	"storefront.internal/control/internal/provider"
	"storefront.internal/shared/catalog"
	"storefront.internal/shared/ident"
	"storefront.internal/shared/pg"
	"storefront.internal/shared/signal"
)

// Privacy is the part of schema control that answers for people's data.
type Privacy struct{ pool *pgxpool.Pool }

// NewPrivacy returns Privacy.
func NewPrivacy(pool *pgxpool.Pool) *Privacy { return &Privacy{pool: pool} }

const selectPrivacyRequest = `
SELECT q.request_id, q.connection_id, c.provider, q.kind, q.orders, q.received_at, coalesce(e.topic, d.topic_hint, ''), coalesce(d.raw, '')
FROM control.privacy_requests q
JOIN control.connections c ON c.connection_id = q.connection_id
LEFT JOIN control.webhook_deliveries d ON d.delivery_id = q.request_id AND d.minted_at = $2
LEFT JOIN control.endpoints e ON e.endpoint_id = d.endpoint_id
WHERE q.request_id = $1 AND q.completed_at IS NULL`

// Request implements privacy.Store.
func (p *Privacy) Request(ctx context.Context, id ident.DeliveryID) (r privacy.Request, err error) {
	err = p.pool.QueryRow(ctx, selectPrivacyRequest, id, deliveredAt(id)).
		Scan(&r.ID, &r.ConnectionID, &r.Provider, &r.Kind, &r.Orders, &r.ReceivedAt, &r.Hint, &r.Body)
	if errors.Is(err, pgx.ErrNoRows) {
		return r, notFound("privacy request")
	}
	return r, Translate("read privacy request", err)
}

const openPrivacyRequests = `
SELECT request_id, connection_id, kind, orders, received_at
FROM control.privacy_requests
WHERE completed_at IS NULL
ORDER BY received_at
LIMIT 1000`

// Open returns the requests that are not completed, the oldest first, without whom they are about.
func (p *Privacy) Open(ctx context.Context) (open []privacy.Request, err error) {
	rows, err := p.pool.Query(ctx, openPrivacyRequests)
	if err == nil {
		open, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (r privacy.Request, err error) {
			err = row.Scan(&r.ID, &r.ConnectionID, &r.Kind, &r.Orders, &r.ReceivedAt)
			return r, err
		})
	}
	return open, Translate("list privacy requests", err)
}

func deliveredAt(id ident.DeliveryID) time.Time {
	at, _ := ident.MintedAt(string(id))
	return at
}

// Bytes are searched as text in which everything that is not ASCII is escaped, so that no bytes are refused.
const (
	stands = `EXISTS (SELECT FROM unnest($3::text[]) AS t WHERE position(t IN lower(encode(o.raw, 'escape'))) > 0`

	pageOfOrdersWith = `
WITH page AS MATERIALIZED (
    SELECT DISTINCT external_id
    FROM control.observations
    WHERE connection_id = $1 AND entity = 'order' AND external_id > $2
    ORDER BY external_id
    LIMIT $4
)
SELECT p.external_id, $3::text[] IS NULL OR EXISTS (
    SELECT FROM control.observations o
    WHERE o.connection_id = $1 AND o.entity = 'order' AND o.external_id = p.external_id
        AND ` + stands + ` OR position(t IN lower(encode(o.document, 'escape'))) > 0))
FROM page p
ORDER BY p.external_id`
)

// OrdersWith implements privacy.Store.
func (p *Privacy) OrdersWith(ctx context.Context, c ident.ConnectionID, texts []string, from string, limit int) (orders []string, next string, err error) {
	err = pg.InTx(ctx, fresh{p.pool}, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, pageOfOrdersWith, c, from, texts, limit)
		if err != nil {
			return err
		}
		var id string
		var meant bool
		looked := 0
		_, err = pgx.ForEachRow(rows, []any{&id, &meant}, func() error {
			looked++
			if meant {
				orders = append(orders, id)
			}
			return nil
		})
		if looked == limit {
			next = id
		}
		return err
	})
	return orders, next, Translate("search orders", err)
}

const (
	closeOrders = `
UPDATE control.entities
SET redacted_at = coalesce(redacted_at, now())
WHERE connection_id = $1 AND entity = 'order' AND external_id = ANY ($2)`

	selectOrders = `
SELECT observation_id, minted_at, external_id, document
FROM control.observations
WHERE connection_id = $1 AND entity = 'order' AND external_id = ANY ($2) AND redacted_at IS NULL`

	redactOrders = `
UPDATE control.observations o
SET raw = '', document = k.document, redacted_at = now()
FROM unnest($1::text[], $2::timestamptz[], $3::bytea[]) AS k (observation_id, minted_at, document)
WHERE o.observation_id = k.observation_id AND o.minted_at = k.minted_at`

	countRedacted = `UPDATE control.privacy_requests SET redacted = redacted + $2 WHERE request_id = $1`
)

// Redact implements privacy.Store. The entities are locked first, so what is being fetched is either there to be redacted,
// or waits and is not archived.
func (p *Privacy) Redact(ctx context.Context, r *privacy.Request, orders []string) error {
	keys := make([]observation.Key, len(orders))
	for i, id := range orders {
		keys[i] = observation.Key{Entity: catalog.Order, ExternalID: id}
	}
	err := pg.RetryTx(ctx, fresh{p.pool}, func(tx pgx.Tx) error {
		if _, err := lockEntities(ctx, tx, r.ConnectionID, keys); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, closeOrders, r.ConnectionID, orders); err != nil {
			return err
		}
		rows, err := tx.Query(ctx, selectOrders, r.ConnectionID, orders)
		if err != nil {
			return err
		}
		found, err := readRedacted(rows, r.ConnectionID)
		if err != nil {
			return err
		}
		if len(found.ids) > 0 {
			if _, err := tx.Exec(ctx, redactOrders, found.ids, found.minted, found.documents); err != nil {
				return err
			}
		}
		if r.Kind == provider.RedactCustomer {
			if err := requestErasure(ctx, tx, r.ConnectionID, signal.OrderSubject, orders...); err != nil {
				return err
			}
		}
		_, err = tx.Exec(ctx, countRedacted, r.ID, len(found.ids))
		return err
	})
	return Translate("redact orders", err)
}

// redacted are observations with the documents that they have from now on.
type redacted struct {
	ids       []string
	minted    []time.Time
	documents [][]byte
}

func readRedacted(rows pgx.Rows, c ident.ConnectionID) (r redacted, err error) {
	var id, external string
	var minted time.Time
	var document []byte
	_, err = pgx.ForEachRow(rows, []any{&id, &minted, &external, &document}, func() error {
		if document != nil {
			without, err := catalog.WithoutBuyer(document, catalog.Identity{ConnectionID: c, ExternalID: external})
			if err != nil {
				return err
			}
			document = without
		}
		r.ids, r.minted, r.documents = append(r.ids, id), append(r.minted, minted), append(r.documents, document)
		return nil
	})
	return r, err
}

// ForgetEverybody implements privacy.Store.
func (p *Privacy) ForgetEverybody(ctx context.Context, r *privacy.Request) error {
	err := pg.InTx(ctx, p.pool, func(tx pgx.Tx) error {
		return requestErasure(ctx, tx, r.ConnectionID, signal.ConnectionSubject, "")
	})
	return Translate("ask to forget everybody", err)
}

// Requests that are still to be executed need their bodies, and take them away themselves.
const forgetDeliveries = `
WITH page AS MATERIALIZED (
    SELECT o.delivery_id, o.minted_at,
           octet_length(o.raw) > 0 AND ($3::text[] IS NULL OR ` + stands + `))
               AND NOT EXISTS (SELECT FROM control.privacy_requests q
                   WHERE q.request_id = o.delivery_id AND q.kind <> 'data_request' AND q.completed_at IS NULL) AS meant
    FROM control.webhook_deliveries o
    WHERE o.connection_id = $1 AND o.delivery_id > $2
    ORDER BY o.delivery_id
    LIMIT $4
), gone AS (
    UPDATE control.webhook_deliveries d
    SET raw = ''
    FROM page p
    WHERE d.delivery_id = p.delivery_id AND d.minted_at = p.minted_at AND p.meant
)
SELECT count(*), coalesce(max(delivery_id), '') FROM page`

// ForgetDeliveries implements privacy.Store.
func (p *Privacy) ForgetDeliveries(ctx context.Context, r *privacy.Request, texts []string, from ident.DeliveryID, limit int) (next ident.DeliveryID, err error) {
	err = pg.InTx(ctx, fresh{p.pool}, func(tx pgx.Tx) error {
		var looked int
		err := tx.QueryRow(ctx, forgetDeliveries, r.ConnectionID, from, texts, limit).Scan(&looked, &next)
		if looked < limit {
			next = ""
		}
		return err
	})
	return next, Translate("forget notifications", err)
}

const (
	forgetDelivery  = `UPDATE control.webhook_deliveries SET raw = '' WHERE delivery_id = $1 AND minted_at = $2`
	completeRequest = `UPDATE control.privacy_requests SET completed_at = now() WHERE request_id = $1 AND completed_at IS NULL AND kind = $2`
)

// Complete implements privacy.Store.
func (p *Privacy) Complete(ctx context.Context, r *privacy.Request) error {
	_, err := p.complete(ctx, r.ID, r.Kind)
	return err
}

// EndDataRequest ends a request that an operator answers. ended is false when there is none.
func (p *Privacy) EndDataRequest(ctx context.Context, id ident.DeliveryID) (ended bool, err error) {
	return p.complete(ctx, id, provider.DataRequest)
}

func (p *Privacy) complete(ctx context.Context, id ident.DeliveryID, kind provider.Kind) (open bool, err error) {
	err = pg.InTx(ctx, p.pool, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, completeRequest, id, kind)
		if open = tag.RowsAffected() > 0; err != nil || !open {
			return err
		}
		_, err = tx.Exec(ctx, forgetDelivery, id, deliveredAt(id))
		return err
	})
	return open, Translate("complete privacy request", err)
}
