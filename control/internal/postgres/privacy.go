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

// Privacy is the part of schema control that deletes personal data.
type Privacy struct{ pool *pgxpool.Pool }

// NewPrivacy returns Privacy.
func NewPrivacy(pool *pgxpool.Pool) *Privacy { return &Privacy{pool: pool} }

const selectPrivacyRequest = `
SELECT q.request_id, q.connection_id, c.provider, q.kind, q.orders, q.received_at, coalesce(q.matches, 0),
    q.approved_at IS NOT NULL, coalesce(e.topic, d.topic_hint, ''), coalesce(d.raw, ''),
    coalesce(q.progress, '{}')
FROM control.privacy_requests q
JOIN control.connections c ON c.connection_id = q.connection_id
LEFT JOIN control.webhook_deliveries d ON d.delivery_id = q.request_id AND d.minted_at = $2
LEFT JOIN control.endpoints e ON e.endpoint_id = d.endpoint_id
WHERE q.request_id = $1 AND q.completed_at IS NULL`

// Request implements privacy.Store.
func (p *Privacy) Request(ctx context.Context, id ident.WebhookEventID) (r privacy.Request, err error) {
	err = p.pool.QueryRow(ctx, selectPrivacyRequest, id, eventMintedAt(id)).
		Scan(&r.ID, &r.ConnectionID, &r.Provider, &r.Kind, &r.Orders, &r.ReceivedAt, &r.Matches,
			&r.Approved, &r.Hint, &r.Body, &r.Progress)
	if errors.Is(err, pgx.ErrNoRows) {
		return r, notFound("privacy request")
	}
	return r, Translate("read privacy request", err)
}

const openPrivacyRequests = `
SELECT request_id, connection_id, kind, orders, received_at, coalesce(matches, 0), approved_at IS NOT NULL
FROM control.privacy_requests
WHERE completed_at IS NULL
ORDER BY received_at
LIMIT 1000`

// ListOpen returns the requests that are not completed, the oldest first, without personal data.
func (p *Privacy) ListOpen(ctx context.Context) (open []privacy.Request, err error) {
	rows, err := p.pool.Query(ctx, openPrivacyRequests)
	if err == nil {
		open, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (r privacy.Request, err error) {
			err = row.Scan(&r.ID, &r.ConnectionID, &r.Kind, &r.Orders, &r.ReceivedAt, &r.Matches, &r.Approved)
			return r, err
		})
	}
	return open, Translate("list privacy requests", err)
}

func eventMintedAt(id ident.WebhookEventID) time.Time {
	at, _ := ident.MintedAt(string(id))
	return at
}

// A body contains a hint in its bytes as encode writes them, with everything outside ASCII escaped, so every
// body can be searched. OFFSET 0 keeps PostgreSQL from encoding the body anew for each hint.
const (
	selectOrderIDs = `
SELECT DISTINCT external_id
FROM control.observations
WHERE connection_id = $1 AND entity = 'order' AND external_id > $2
ORDER BY external_id
LIMIT $3`

	selectOrdersWithHints = `
SELECT o.external_id, o.raw, coalesce(o.document, '')
FROM control.observations o
CROSS JOIN LATERAL (
    SELECT lower(encode(o.raw, 'escape') COLLATE "C") AS raw,
        lower(encode(o.document, 'escape') COLLATE "C") AS document
    OFFSET 0
) AS s
WHERE o.connection_id = $1 AND o.entity = 'order' AND o.external_id = ANY ($2::text[]) AND (
    EXISTS (SELECT FROM unnest($3::text[]) AS hint WHERE position(hint IN s.raw) > 0)
    OR EXISTS (SELECT FROM unnest($4::text[]) AS hint WHERE position(hint IN s.document) > 0))
ORDER BY o.external_id`
)

// FindOrders implements privacy.Store.
func (p *Privacy) FindOrders(ctx context.Context, c ident.ConnectionID, m *privacy.Matcher, after string,
	limit int) (page privacy.OrderPage, err error) {
	err = pg.InTx(ctx, pg.CustomPlans(p.pool), func(tx pgx.Tx) error {
		rows, _ := tx.Query(ctx, selectOrderIDs, c, after, limit)
		ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			return err
		}
		page = privacy.OrderPage{Orders: ids, Read: len(ids)}
		if len(ids) == limit {
			page.Next = ids[limit-1]
		}
		if m == nil || len(ids) == 0 {
			return nil
		}
		page.Orders, err = selectMatchingOrders(ctx, tx, c, m, ids)
		return err
	})
	return page, Translate("search orders", err)
}

func selectMatchingOrders(ctx context.Context, tx pgx.Tx, c ident.ConnectionID, m *privacy.Matcher,
	ids []string) (matching []string, err error) {
	rows, _ := tx.Query(ctx, selectOrdersWithHints, c, ids, m.Hints(), m.DocumentHints())
	var id string
	var raw, document []byte
	_, err = pgx.ForEachRow(rows, []any{&id, &raw, &document}, func() error {
		if n := len(matching); n > 0 && matching[n-1] == id {
			return nil
		}
		if m.MatchRaw(raw) || m.MatchDocument(document) {
			matching = append(matching, id)
		}
		return nil
	})
	return matching, err
}

const saveProgress = `UPDATE control.privacy_requests SET progress = $2 WHERE request_id = $1`

// SaveProgress implements privacy.Store.
func (p *Privacy) SaveProgress(ctx context.Context, r *privacy.Request) error {
	_, err := p.pool.Exec(ctx, saveProgress, r.ID, r.Progress)
	return Translate("save progress of privacy request", err)
}

// A held request searches again when it is approved: the shop may have new orders.
const holdRequest = `
UPDATE control.privacy_requests
SET matches = $2, progress = NULL
WHERE request_id = $1 AND completed_at IS NULL AND approved_at IS NULL`

// Hold implements privacy.Store.
func (p *Privacy) Hold(ctx context.Context, r *privacy.Request, matches int) error {
	_, err := p.pool.Exec(ctx, holdRequest, r.ID, matches)
	return Translate("hold privacy request", err)
}

const (
	approveRequest = `
UPDATE control.privacy_requests
SET approved_at = now()
WHERE request_id = $1 AND matches > 0 AND approved_at IS NULL AND completed_at IS NULL`
	refuseRequest = `
UPDATE control.privacy_requests
SET completed_at = now(), progress = NULL
WHERE request_id = $1 AND matches > 0 AND approved_at IS NULL AND completed_at IS NULL`
)

// Approve lets a held request continue. approved is false when no such request is held.
func (p *Privacy) Approve(ctx context.Context, jobs Jobs,
	id ident.WebhookEventID) (approved bool, err error) {
	err = pg.InTx(ctx, p.pool, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, approveRequest, id)
		if approved = tag.RowsAffected() > 0; err != nil || !approved {
			return err
		}
		return jobs.EnqueuePrivacyRequest(ctx, tx, id)
	})
	return approved && err == nil, Translate("approve privacy request", err)
}

// Refuse completes a held request: only the orders that it names stay redacted. refused is false when no such
// request is held.
func (p *Privacy) Refuse(ctx context.Context, id ident.WebhookEventID) (refused bool, err error) {
	return p.end(ctx, id, refuseRequest, id)
}

const (
	markOrdersRedacted = `
UPDATE control.entities
SET redacted_at = now()
WHERE connection_id = $1 AND entity = 'order' AND external_id = ANY ($2) AND redacted_at IS NULL`

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

// RedactOrders implements privacy.Store. It locks the entities first: a fetch of one either is archived
// before, and is redacted here, or waits and then finds the order redacted.
func (p *Privacy) RedactOrders(ctx context.Context, r *privacy.Request, orders []string) error {
	keys := make([]observation.Key, len(orders))
	for i, id := range orders {
		keys[i] = observation.Key{Entity: catalog.Order, ExternalID: id}
	}
	err := pg.RetryTx(ctx, pg.CustomPlans(p.pool), func(tx pgx.Tx) error {
		if _, err := lockEntities(ctx, tx, r.ConnectionID, keys); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, markOrdersRedacted, r.ConnectionID, orders); err != nil {
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

// redactedObservations are observations with their new documents.
type redactedObservations struct {
	ids       []string
	minted    []time.Time
	documents [][]byte
}

func readRedacted(rows pgx.Rows, c ident.ConnectionID) (r redactedObservations, err error) {
	var id, external string
	var minted time.Time
	var document []byte
	_, err = pgx.ForEachRow(rows, []any{&id, &minted, &external, &document}, func() error {
		if document != nil {
			without, err := catalog.WithoutBuyer(document, catalog.Identity{ConnectionID: c,
				ExternalID: external})
			if err != nil {
				return err
			}
			document = without
		}
		r.ids, r.minted, r.documents = append(r.ids, id), append(r.minted,
			minted), append(r.documents, document)
		return nil
	})
	return r, err
}

// RequestConnectionErasure implements privacy.Store.
func (p *Privacy) RequestConnectionErasure(ctx context.Context, r *privacy.Request) error {
	err := pg.InTx(ctx, p.pool, func(tx pgx.Tx) error {
		return requestErasure(ctx, tx, r.ConnectionID, signal.ConnectionSubject, "")
	})
	return Translate("request erasure of a connection", err)
}

// Open privacy requests keep their bodies, which they need; Complete removes them. raw is NULL for a body
// that is kept, and empty for one that is removed whatever it contains.
const (
	selectWebhookBodies = `
WITH page AS MATERIALIZED (
    SELECT delivery_id, minted_at, raw
    FROM control.webhook_deliveries
    WHERE connection_id = $1 AND delivery_id > $2
    ORDER BY delivery_id
    LIMIT $4
)
SELECT p.delivery_id, p.minted_at, CASE
    WHEN octet_length(p.raw) = 0 OR EXISTS (SELECT FROM control.privacy_requests q
        WHERE q.request_id = p.delivery_id AND q.kind <> 'data_request' AND q.completed_at IS NULL) THEN NULL
    WHEN $3::text[] IS NULL THEN ''
    WHEN EXISTS (
        SELECT FROM (SELECT lower(encode(p.raw, 'escape') COLLATE "C") AS raw OFFSET 0) AS s,
            unnest($3::text[]) AS hint
        WHERE position(hint IN s.raw) > 0
    ) THEN p.raw
    END
FROM page p
ORDER BY p.delivery_id`

	removeWebhookBodies = `
UPDATE control.webhook_deliveries d
SET raw = ''
FROM unnest($1::text[], $2::timestamptz[]) AS k (delivery_id, minted_at)
WHERE d.delivery_id = k.delivery_id AND d.minted_at = k.minted_at`
)

// RemoveWebhookBodies implements privacy.Store.
func (p *Privacy) RemoveWebhookBodies(ctx context.Context, r *privacy.Request, m *privacy.Matcher,
	after ident.WebhookEventID, limit int) (next ident.WebhookEventID, err error) {
	var hints []string
	if m != nil {
		hints = m.Hints()
	}
	err = pg.InTx(ctx, pg.CustomPlans(p.pool), func(tx pgx.Tx) error {
		rows, _ := tx.Query(ctx, selectWebhookBodies, r.ConnectionID, after, hints, limit)
		var id string
		var minted time.Time
		var raw []byte
		var ids []string
		var mintedAt []time.Time
		read := 0
		_, err := pgx.ForEachRow(rows, []any{&id, &minted, &raw}, func() error {
			read++
			if raw != nil && (m == nil || m.MatchRaw(raw)) {
				ids, mintedAt = append(ids, id), append(mintedAt, minted)
			}
			return nil
		})
		if next = ""; read == limit {
			next = ident.WebhookEventID(id)
		}
		if err != nil || len(ids) == 0 {
			return err
		}
		_, err = tx.Exec(ctx, removeWebhookBodies, ids, mintedAt)
		return err
	})
	return next, Translate("remove webhook bodies", err)
}

const (
	removeWebhookBody = `
UPDATE control.webhook_deliveries SET raw = '' WHERE delivery_id = $1 AND minted_at = $2`
	completeRequest = `
UPDATE control.privacy_requests SET completed_at = now(), progress = NULL
WHERE request_id = $1 AND completed_at IS NULL AND kind = $2`
)

// Complete implements privacy.Store.
func (p *Privacy) Complete(ctx context.Context, r *privacy.Request) error {
	_, err := p.end(ctx, r.ID, completeRequest, r.ID, r.Kind)
	return err
}

// CompleteDataRequest completes a request that an operator answered. ended is false when no such request is
// open.
func (p *Privacy) CompleteDataRequest(ctx context.Context, id ident.WebhookEventID) (ended bool, err error) {
	return p.end(ctx, id, completeRequest, id, provider.DataRequest)
}

// end completes a request by a statement and removes its body. ended is false when the statement finds none.
func (p *Privacy) end(ctx context.Context, id ident.WebhookEventID, sql string,
	args ...any) (ended bool, err error) {
	err = pg.InTx(ctx, p.pool, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, sql, args...)
		if ended = tag.RowsAffected() > 0; err != nil || !ended {
			return err
		}
		_, err = tx.Exec(ctx, removeWebhookBody, id, eventMintedAt(id))
		return err
	})
	return ended, Translate("complete privacy request", err)
}
