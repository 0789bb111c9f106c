package deliveries

import (
	"bytes"
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// candidate is an entry for a lease.
type candidate struct {
	LeasedEntry
	freeze   bool  // this lease freezes the body
	position int64 // in the lane, from 1; 0 when it was not counted
}

// seqRange is the range of the sequence numbers $4. The tables change too fast for their statistics: without
// the range the planner may expect one entry in a lane of a hundred thousand and read the whole lane.
const seqRange = `BETWEEN (SELECT min(s) FROM unnest($4::bigint[]) AS s)
    AND (SELECT max(s) FROM unnest($4::bigint[]) AS s)`

const selectUnconfirmed = `
SELECT ctid, seq, id, body, attempts, extract(epoch FROM now() - created_at)::float8,
    coalesce(traceparent, ''), false, 0::bigint, NULL::text
FROM delivery.entries
WHERE connection_id = $1 AND kind = $2 AND lane = $3 AND seq ` + seqRange + ` AND seq = ANY ($4)
    AND (lane < 8 OR not_before <= now())
ORDER BY seq
LIMIT $5`

// selectInOrder selects the first entries of lanes. It skips an entry whose Decision is not stored, for up
// to DecisionWait; after that the entry goes without engine_ids. Of each lane it examines a bounded number of
// entries, so that a lane full of waiting entries stays cheap. The inner LIMIT 1 makes the planner look up
// each Decision by its whole key.
const selectInOrder = `
SELECT o.n, e.*
FROM unnest($1::text[], $2::smallint[], $3::smallint[])
    WITH ORDINALITY AS o (connection_id, kind, lane, n)
CROSS JOIN LATERAL (
    SELECT e.tid, e.seq, e.id, e.body, e.attempts, extract(epoch FROM now() - e.created_at)::float8,
        coalesce(e.traceparent, ''), e.awaits IS NOT NULL, e.place, d.engine_ids
    FROM (
        SELECT *, ctid AS tid, row_number() OVER (ORDER BY seq) AS place
        FROM delivery.entries
        WHERE connection_id = o.connection_id AND kind = o.kind AND lane = o.lane
        ORDER BY seq
        LIMIT $6
    ) e
    LEFT JOIN LATERAL (
        SELECT d.engine_ids::text AS engine_ids, true AS arrived
        FROM relay.decisions d
        WHERE d.connection_id = e.connection_id AND d.decision_id = e.awaits AND d.minted_at = e.awaits_minted
        LIMIT 1
    ) d ON e.awaits IS NOT NULL
    WHERE e.awaits IS NULL OR d.arrived OR e.created_at <= now() - $4::interval
    ORDER BY e.seq
    LIMIT $5
) e
ORDER BY o.n, e.seq`

const (
	lookAhead     = 2000 // entries that are examined of the lane whose turn it is
	lookAheadMore = 500  // of each lane beside it
)

const selectIsolated = `
SELECT ctid, seq, id, body, attempts, extract(epoch FROM now() - created_at)::float8,
    coalesce(traceparent, ''), false, 0::bigint, NULL::text
FROM delivery.entries
WHERE connection_id = $1 AND kind = $2 AND lane = $3 AND lane >= 8 AND not_before <= now()
ORDER BY not_before
LIMIT $4`

// selectResent selects what goes next of a retry lane, or of a lane with unconfirmed entries: these go before
// all others. It may find nothing.
func selectResent(ctx context.Context, tx pgx.Tx, q LeaseQuery, l *lane) ([]candidate, error) {
	conn, kind, limit := l.ConnectionID, int16(l.Kind), q.Limit
	if l.Isolated {
		limit = min(limit, isolatedLimit)
	}
	if len(l.unconfirmed) > 0 {
		selected, err := queryCandidates(ctx, tx, selectUnconfirmed, conn, kind, l.Lane, l.unconfirmed, limit)
		if err != nil || len(selected) > 0 || !l.Isolated {
			return selected, err
		}
	}
	return queryCandidates(ctx, tx, selectIsolated, conn, kind, l.Lane, limit)
}

func queryCandidates(ctx context.Context, tx pgx.Tx, sql string, args ...any) ([]candidate, error) {
	rows, err := tx.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (candidate, error) {
		return scanCandidate(row)
	})
}

// scanCandidate reads an entry; before are the columns in front of it.
func scanCandidate(row pgx.CollectableRow, before ...any) (c candidate, err error) {
	var engineIDs []byte
	var waited float64
	err = row.Scan(append(before, &c.tid, &c.Seq, &c.ID, &c.Body, &c.Attempts, &waited, &c.Traceparent,
		&c.freeze, &c.position, &engineIDs)...)
	c.Waited = time.Duration(max(waited, 0) * float64(time.Second))
	if c.freeze {
		c.Body = withEngineIDs(c.Body, engineIDs)
	}
	return c, err
}

// page is the first entries of lanes.
type page struct {
	lanes     []*lane
	each      int // entries of a lane
	lookAhead int
}

// selectInOrder returns the entries of each lane.
func (p page) selectInOrder(ctx context.Context, tx pgx.Tx, q LeaseQuery) ([][]candidate, error) {
	found := make([][]candidate, len(p.lanes))
	keys := keysOf(p.lanes)
	rows, err := tx.Query(ctx, selectInOrder, keys.connections, keys.kinds, keys.lanes, q.DecisionWait,
		p.each, p.lookAhead)
	if err != nil {
		return found, err
	}
	_, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (struct{}, error) {
		var n int64
		c, err := scanCandidate(row, &n)
		if err == nil {
			found[n-1] = append(found[n-1], c)
		}
		return struct{}{}, err
	})
	return found, err
}

// withEngineIDs appends the member engine_ids to a JSON object, unless there are none.
func withEngineIDs(body, engineIDs []byte) []byte {
	engineIDs = bytes.TrimSpace(engineIDs)
	end := bytes.LastIndexByte(body, '}')
	if len(engineIDs) == 0 || bytes.Equal(engineIDs, []byte("null")) || end < 0 {
		return body
	}
	head := bytes.TrimRight(body[:end], " \t\r\n")
	out := make([]byte, 0, len(body)+len(engineIDs)+len(`,"engine_ids":`))
	out = append(out, head...)
	if !bytes.HasSuffix(head, []byte("{")) {
		out = append(out, ',')
	}
	out = append(out, `"engine_ids":`...)
	out = append(out, engineIDs...)
	return append(out, '}')
}
