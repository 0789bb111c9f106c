package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"storefront.internal/engine-relay/internal/erase"
	"storefront.internal/engine-relay/internal/record"
	"storefront.internal/shared/ident"
	"storefront.internal/shared/pg"
)

// What is meant is what was stored before the erasure, by one clock, or accepted before it, by the edge's. A row is found
// by its place (ctid) within its day; one that moves meanwhile is found again by the next chunk.

const (
	visitorsDue = `
FROM unnest($2::text[], $3::timestamptz[]) AS v (visitor_id, erased_at)
JOIN %[1]s AS s ON s.visitor_id = v.visitor_id
WHERE s.connection_id = $1 AND s.visitor_id IS NOT NULL AND (s.stored_at < v.erased_at OR s.%[2]s < v.erased_at)
LIMIT $4`

	everybodyDue = `
FROM (VALUES ($2::timestamptz)) AS v (erased_at), %[1]s AS s
WHERE s.connection_id = $1 AND (s.visitor_id IS NOT NULL OR s.session_id IS NOT NULL)
    AND (s.stored_at < v.erased_at OR s.%[2]s < v.erased_at)
LIMIT $3`

	forgetSignals = `
WITH due AS MATERIALIZED (SELECT s.ctid AS place, s.stored_at, s.record_id %s),
gone AS (
    UPDATE relay.signals AS s
    SET visitor_id = NULL, session_id = NULL
    FROM due AS d
    WHERE s.stored_at = d.stored_at AND s.ctid = d.place
)
SELECT count(*), coalesce(array_agg(DISTINCT record_id), '{}'), coalesce(min(stored_at), now()), coalesce(max(stored_at), now())
FROM due`

	forgetDecisions = `
WITH due AS MATERIALIZED (SELECT s.ctid AS place, s.minted_at %s),
gone AS (
    UPDATE relay.decisions AS s
    SET visitor_id = NULL, session_id = NULL
    FROM due AS d
    WHERE s.minted_at = d.minted_at AND s.ctid = d.place
)
SELECT count(*) FROM due`
)

// due completes a statement with whom the work is about.
func due(statement, table, accepted string, w *erase.Work, limit int) (sql string, args []any) {
	if !w.Everybody.IsZero() {
		return fmt.Sprintf(statement, fmt.Sprintf(everybodyDue, table, accepted)), []any{w.ConnectionID, w.Everybody, limit}
	}
	ids, before := split(w.Visitors)
	return fmt.Sprintf(statement, fmt.Sprintf(visitorsDue, table, accepted)), []any{w.ConnectionID, ids, before, limit}
}

func split(subjects []erase.Subject) (ids []string, before []time.Time) {
	for _, s := range subjects {
		ids, before = append(ids, s.ID), append(before, s.Before)
	}
	return ids, before
}

// Decisions implements erase.Store.
func (s *Erasures) Decisions(ctx context.Context, w *erase.Work, limit int) (found int, err error) {
	sql, args := due(forgetDecisions, "relay.decisions", "served_at", w, limit)
	err = pg.InTx(ctx, fresh{s.pool}, func(tx pgx.Tx) error { return tx.QueryRow(ctx, sql, args...).Scan(&found) })
	if err != nil {
		return 0, fmt.Errorf("forget in decisions: %w", err)
	}
	return found, nil
}

// Signals implements erase.Store.
func (s *Erasures) Signals(ctx context.Context, w *erase.Work, limit int) (found int, err error) {
	sql, args := due(forgetSignals, "relay.signals", "received_at", w, limit)
	err = pg.InTx(ctx, fresh{s.pool}, func(tx pgx.Tx) error {
		var records []pgtype.UUID
		var since, until time.Time
		if err := tx.QueryRow(ctx, sql, args...).Scan(&found, &records, &since, &until); err != nil || found == 0 {
			return err
		}
		return blank(ctx, tx, w.ConnectionID, records, since, until)
	})
	if err != nil {
		return 0, fmt.Errorf("forget in signals: %w", err)
	}
	return found, nil
}

const blankAudit = `SELECT relay.blank_audit($1, $2, $3::timestamptz - interval '1 day', $4::timestamptz + interval '1 day')`

// blank forgets the requests that brought signals. One whose signals were stored in two halves has two audits, so the days
// beside are looked at too.
func blank(ctx context.Context, tx pgx.Tx, c ident.ConnectionID, records []pgtype.UUID, since, until time.Time) error {
	_, err := tx.Exec(ctx, blankAudit, c, records, since, until)
	return err
}

const (
	pageOfOrders = `
SELECT s.record_id, min(s.stored_at), max(s.stored_at)
FROM unnest($2::text[], $3::timestamptz[]) AS o (order_external_id, erased_at)
JOIN relay.signals AS s ON s.order_external_id = o.order_external_id
WHERE s.connection_id = $1 AND s.order_external_id IS NOT NULL AND (s.stored_at < o.erased_at OR s.received_at < o.erased_at)
    AND s.record_id > $4
GROUP BY s.record_id
ORDER BY s.record_id
LIMIT $5`

	buyersOf = `
SELECT DISTINCT s.visitor_id, o.erased_at
FROM unnest($2::text[], $3::timestamptz[]) AS o (order_external_id, erased_at)
JOIN relay.signals AS s ON s.order_external_id = o.order_external_id
WHERE s.connection_id = $1 AND s.order_external_id IS NOT NULL AND s.record_id = ANY ($4) AND s.visitor_id IS NOT NULL
    AND s.stored_at BETWEEN $5 AND $6`

	forgetBuyers = `
UPDATE relay.signals
SET visitor_id = NULL, session_id = NULL
WHERE connection_id = $1 AND order_external_id IS NOT NULL AND order_external_id = ANY ($2) AND record_id = ANY ($3)
    AND stored_at BETWEEN $4 AND $5 AND (visitor_id IS NOT NULL OR session_id IS NOT NULL)`
)

// Buyers implements erase.Store. from is the last record of the page before.
func (s *Erasures) Buyers(ctx context.Context, w *erase.Work, from []byte, limit int) (next []byte, err error) {
	ids, before := split(w.Orders)
	err = pg.InTx(ctx, fresh{s.pool}, func(tx pgx.Tx) error {
		p, err := readPage(ctx, tx, pageOfOrders, w.ConnectionID, ids, before, cursor(from), limit)
		if err != nil || len(p.records) == 0 {
			return err
		}
		next = p.last()
		rows, err := tx.Query(ctx, buyersOf, w.ConnectionID, ids, before, p.records, p.since, p.until)
		if err != nil {
			return err
		}
		buyers, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (v record.Visitor, err error) {
			v.ConnectionID = w.ConnectionID
			err = row.Scan(&v.VisitorID, &v.Before)
			return v, err
		})
		if err != nil {
			return err
		}
		if err := forget(ctx, tx, buyers); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, forgetBuyers, w.ConnectionID, ids, p.records, p.since, p.until); err != nil {
			return err
		}
		return blank(ctx, tx, w.ConnectionID, p.records, p.since, p.until)
	})
	if err != nil {
		return nil, fmt.Errorf("forget buyers: %w", err)
	}
	return next, nil
}

const pageOfAudits = `
SELECT record_id, stored_at, stored_at
FROM relay.audit
WHERE connection_id = $1 AND (stored_at < $2 OR received_at < $2) AND record_id > $3
ORDER BY record_id
LIMIT $4`

// Audits implements erase.Store.
func (s *Erasures) Audits(ctx context.Context, w *erase.Work, from []byte, limit int) (next []byte, err error) {
	err = pg.InTx(ctx, fresh{s.pool}, func(tx pgx.Tx) error {
		p, err := readPage(ctx, tx, pageOfAudits, w.ConnectionID, w.Everybody, cursor(from), limit)
		if err != nil || len(p.records) == 0 {
			return err
		}
		next = p.last()
		return blank(ctx, tx, w.ConnectionID, p.records, p.since, p.until)
	})
	if err != nil {
		return nil, fmt.Errorf("forget requests: %w", err)
	}
	return next, nil
}

// page is requests in the order of their ids, and the time in which they were stored.
type page struct {
	records      []pgtype.UUID
	since, until time.Time
}

func readPage(ctx context.Context, tx pgx.Tx, sql string, args ...any) (p page, err error) {
	rows, err := tx.Query(ctx, sql, args...)
	if err != nil {
		return p, err
	}
	var id pgtype.UUID
	var first, last time.Time
	_, err = pgx.ForEachRow(rows, []any{&id, &first, &last}, func() error {
		if len(p.records) == 0 || first.Before(p.since) {
			p.since = first
		}
		if last.After(p.until) {
			p.until = last
		}
		p.records = append(p.records, id)
		return nil
	})
	return p, err
}

func (p page) last() []byte {
	id := p.records[len(p.records)-1].Bytes
	return id[:]
}

// cursor is the place after which a page begins; nothing is the begin.
func cursor(from []byte) pgtype.UUID {
	id, _ := uuid.FromBytes(from) // the zero id is before every other
	return pgtype.UUID{Bytes: id, Valid: true}
}
