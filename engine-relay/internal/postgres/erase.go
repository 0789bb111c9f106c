package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"storefront.internal/engine-relay/internal/erase"
	"storefront.internal/engine-relay/internal/sink"
	"storefront.internal/shared/ident"
	"storefront.internal/shared/pg"
)

// An erasure covers rows that were stored before its instant, by PostgreSQL's clock, or accepted before it,
// by the edge's clock. A row is updated by its ctid within its partition; one that moves meanwhile is found
// again by the next chunk.

const (
	ofVisitors = `
FROM unnest($2::text[], $3::timestamptz[]) AS v (visitor_id, erased_at)
JOIN %[1]s AS s ON s.visitor_id = v.visitor_id
WHERE s.connection_id = $1 AND s.visitor_id IS NOT NULL
    AND (s.stored_at < v.erased_at OR s.%[2]s < v.erased_at)
LIMIT $4`

	ofConnection = `
FROM (VALUES ($2::timestamptz)) AS v (erased_at), %[1]s AS s
WHERE s.connection_id = $1 AND (s.visitor_id IS NOT NULL OR s.session_id IS NOT NULL)
    AND (s.stored_at < v.erased_at OR s.%[2]s < v.erased_at)
LIMIT $3`

	eraseSignals = `
WITH due AS MATERIALIZED (SELECT s.ctid AS place, s.stored_at, s.record_id %s),
gone AS (
    UPDATE relay.signals AS s
    SET visitor_id = NULL, session_id = NULL
    FROM due AS d
    WHERE s.stored_at = d.stored_at AND s.ctid = d.place
)
SELECT count(*), coalesce(array_agg(DISTINCT record_id), '{}'), coalesce(min(stored_at), now()),
    coalesce(max(stored_at), now())
FROM due`

	eraseDecisions = `
WITH due AS MATERIALIZED (SELECT s.ctid AS place, s.minted_at %s),
gone AS (
    UPDATE relay.decisions AS s
    SET visitor_id = NULL, session_id = NULL
    FROM due AS d
    WHERE s.minted_at = d.minted_at AND s.ctid = d.place
)
SELECT count(*) FROM due`
)

// eraseStatement completes a statement with the subjects of the claim.
func eraseStatement(statement, table, accepted string, c *erase.Claim, limit int) (sql string, args []any) {
	if !c.WholeConnection.IsZero() {
		return fmt.Sprintf(statement, fmt.Sprintf(ofConnection, table, accepted)),
			[]any{c.ConnectionID, c.WholeConnection, limit}
	}
	ids, before := idsAndInstants(c.Visitors)
	return fmt.Sprintf(statement, fmt.Sprintf(ofVisitors, table, accepted)),
		[]any{c.ConnectionID, ids, before, limit}
}

func idsAndInstants(subjects []erase.Subject) (ids []string, before []time.Time) {
	for _, s := range subjects {
		ids, before = append(ids, s.ID), append(before, s.Before)
	}
	return ids, before
}

// EraseDecisions implements erase.Store.
func (s *Erasures) EraseDecisions(ctx context.Context, c *erase.Claim, limit int) (found int, err error) {
	sql, args := eraseStatement(eraseDecisions, "relay.decisions", "served_at", c, limit)
	err = pg.InTx(ctx, pg.CustomPlans(s.pool), func(tx pgx.Tx) error {
		return tx.QueryRow(ctx, sql, args...).Scan(&found)
	})
	if err != nil {
		return 0, fmt.Errorf("erase in decisions: %w", err)
	}
	return found, nil
}

// EraseSignals implements erase.Store.
func (s *Erasures) EraseSignals(ctx context.Context, c *erase.Claim, limit int) (found int, err error) {
	sql, args := eraseStatement(eraseSignals, "relay.signals", "received_at", c, limit)
	err = pg.InTx(ctx, pg.CustomPlans(s.pool), func(tx pgx.Tx) error {
		var p page
		err := tx.QueryRow(ctx, sql, args...).Scan(&found, &p.records, &p.since, &p.until)
		if err != nil || found == 0 {
			return err
		}
		return blankAudits(ctx, tx, c.ConnectionID, p)
	})
	if err != nil {
		return 0, fmt.Errorf("erase in signals: %w", err)
	}
	return found, nil
}

const blankAuditsSQL = `
SELECT relay.blank_audit($1, $2, $3::timestamptz - interval '1 day', $4::timestamptz + interval '1 day')`

// blankAudits blanks the audits of requests. A request that was stored in two halves has two audits, perhaps
// on different days, so the neighbouring days are included.
func blankAudits(ctx context.Context, tx pgx.Tx, c ident.ConnectionID, p page) error {
	_, err := tx.Exec(ctx, blankAuditsSQL, c, p.records, p.since, p.until)
	return err
}

const (
	pageOfOrders = `
SELECT s.record_id, min(s.stored_at), max(s.stored_at)
FROM unnest($2::text[], $3::timestamptz[]) AS o (order_external_id, erased_at)
JOIN relay.signals AS s ON s.order_external_id = o.order_external_id
WHERE s.connection_id = $1 AND s.order_external_id IS NOT NULL
    AND (s.stored_at < o.erased_at OR s.received_at < o.erased_at)
    AND s.record_id > $4
GROUP BY s.record_id
ORDER BY s.record_id
LIMIT $5`

	// the visitors of each order, in the order in which their first signals with it were received
	buyersOf = `
SELECT visitor_id, erased_at, place FROM (
    SELECT s.visitor_id, o.erased_at,
        row_number() OVER (PARTITION BY s.order_external_id
            ORDER BY min(s.received_at), s.visitor_id) AS place
    FROM unnest($2::text[], $3::timestamptz[]) AS o (order_external_id, erased_at)
    JOIN relay.signals AS s ON s.order_external_id = o.order_external_id
    WHERE s.connection_id = $1 AND s.order_external_id IS NOT NULL AND s.visitor_id IS NOT NULL
        AND (s.stored_at < o.erased_at OR s.received_at < o.erased_at)
    GROUP BY s.order_external_id, s.visitor_id, o.erased_at
) AS b
WHERE place <= $4 + 1`

	eraseBuyers = `
UPDATE relay.signals
SET visitor_id = NULL, session_id = NULL
WHERE connection_id = $1 AND order_external_id IS NOT NULL AND order_external_id = ANY ($2)
    AND record_id = ANY ($3)
    AND stored_at BETWEEN $4 AND $5 AND (visitor_id IS NOT NULL OR session_id IS NOT NULL)`
)

// RequestBuyers implements erase.Store.
func (s *Erasures) RequestBuyers(ctx context.Context, c *erase.Claim, most int) (crowded int, err error) {
	ids, before := idsAndInstants(c.Orders)
	err = pg.InTx(ctx, pg.CustomPlans(s.pool), func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, buyersOf, c.ConnectionID, ids, before, most)
		if err != nil {
			return err
		}
		var buyers []sink.VisitorErasure
		v := sink.VisitorErasure{ConnectionID: c.ConnectionID}
		var place int
		if _, err = pgx.ForEachRow(rows, []any{&v.VisitorID, &v.Before, &place}, func() error {
			if place > most {
				crowded++
			} else {
				buyers = append(buyers, v)
			}
			return nil
		}); err != nil {
			return err
		}
		return requestErasures(ctx, tx, buyers)
	})
	if err != nil {
		return 0, fmt.Errorf("find buyers: %w", err)
	}
	return crowded, nil
}

// EraseOrders implements erase.Store. The cursor is the id of the last record.
func (s *Erasures) EraseOrders(
	ctx context.Context, c *erase.Claim, from [16]byte, limit int,
) (next [16]byte, err error) {
	ids, before := idsAndInstants(c.Orders)
	err = pg.InTx(ctx, pg.CustomPlans(s.pool), func(tx pgx.Tx) error {
		p, err := readPage(ctx, tx, pageOfOrders, c.ConnectionID, ids, before, uuidOf(from), limit)
		if err != nil || len(p.records) == 0 {
			return err
		}
		next = p.last()
		if _, err := tx.Exec(ctx, eraseBuyers, c.ConnectionID, ids, p.records, p.since, p.until); err != nil {
			return err
		}
		return blankAudits(ctx, tx, c.ConnectionID, p)
	})
	if err != nil {
		return [16]byte{}, fmt.Errorf("erase buyers: %w", err)
	}
	return next, nil
}

const pageOfAudits = `
SELECT record_id, stored_at, stored_at
FROM relay.audit
WHERE connection_id = $1 AND (stored_at < $2 OR received_at < $2) AND record_id > $3
ORDER BY record_id
LIMIT $4`

// EraseAudits implements erase.Store. The cursor is the id of the last record.
func (s *Erasures) EraseAudits(
	ctx context.Context, c *erase.Claim, from [16]byte, limit int,
) (next [16]byte, err error) {
	err = pg.InTx(ctx, pg.CustomPlans(s.pool), func(tx pgx.Tx) error {
		p, err := readPage(ctx, tx, pageOfAudits, c.ConnectionID, c.WholeConnection, uuidOf(from), limit)
		if err != nil || len(p.records) == 0 {
			return err
		}
		next = p.last()
		return blankAudits(ctx, tx, c.ConnectionID, p)
	})
	if err != nil {
		return [16]byte{}, fmt.Errorf("erase audits: %w", err)
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

func (p page) last() [16]byte { return p.records[len(p.records)-1].Bytes }
