package deliveries

import (
	"bytes"
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// candidate is a delivery that Take chose. awaited: its body is frozen by this lease. place counts from the lane's first, which
// is 1; it is 0 where that was not looked at.
type candidate struct {
	Leased
	awaited bool
	place   int64
}

// near names the span of the deliveries $4 in their lane. The tables change too fast for their statistics: without a span the
// planner may take a lane of a hundred thousand deliveries for one of a single one, and read all of it.
const near = `BETWEEN (SELECT min(s) FROM unnest($4::bigint[]) AS s) AND (SELECT max(s) FROM unnest($4::bigint[]) AS s)`

const selectUnconfirmed = `
SELECT seq, id, body, attempts, extract(epoch FROM now() - created_at)::float8, coalesce(traceparent, ''), false, 0::bigint, NULL::text
FROM delivery.entries
WHERE connection_id = $1 AND kind = $2 AND lane = $3 AND seq ` + near + ` AND seq = ANY ($4) AND (lane < 8 OR not_before <= now())
ORDER BY seq
LIMIT $5`

// selectInOrder takes the first of a lane. One that awaits its Decision is passed over until the row is there or the
// wait is over; then it goes without engine_ids. It looks no further into the lane than $6: who waits for a Decision that never
// comes, with thousands of signals, must not have all of them looked at in every turn. The other LIMIT keeps the search for a
// Decision one by its whole key.
const selectInOrder = `
SELECT e.seq, e.id, e.body, e.attempts, extract(epoch FROM now() - e.created_at)::float8, coalesce(e.traceparent, ''), e.awaits IS NOT NULL, e.place, d.engine_ids
FROM (
    SELECT *, row_number() OVER (ORDER BY seq) AS place
    FROM delivery.entries
    WHERE connection_id = $1 AND kind = $2 AND lane = $3
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
LIMIT $5`

// lookAhead is how many deliveries of a lane are looked at, at the most, for those that may go.
const lookAhead = 2000

const selectAlone = `
SELECT seq, id, body, attempts, extract(epoch FROM now() - created_at)::float8, coalesce(traceparent, ''), false, 0::bigint, NULL::text
FROM delivery.entries
WHERE connection_id = $1 AND kind = $2 AND lane = $3 AND lane >= 8 AND not_before <= now()
ORDER BY not_before
LIMIT $4`

// choose reads what of a locked lane goes next: what is unconfirmed before anything else.
func choose(ctx context.Context, tx pgx.Tx, q TakeQuery, l *lane) ([]candidate, error) {
	limit := q.Limit
	if l.Alone {
		limit = min(limit, aloneLimit)
	}
	if len(l.unconfirmed) > 0 {
		chosen, err := candidates(ctx, tx, q, selectUnconfirmed, l.ConnectionID, int16(l.Kind), l.Lane, l.unconfirmed, limit)
		if err != nil || len(chosen) > 0 {
			return chosen, err
		}
	}
	if l.Alone {
		return candidates(ctx, tx, q, selectAlone, l.ConnectionID, int16(l.Kind), l.Lane, limit)
	}
	return candidates(ctx, tx, q, selectInOrder, l.ConnectionID, int16(l.Kind), l.Lane, q.DecisionWait, limit, lookAhead)
}

func candidates(ctx context.Context, tx pgx.Tx, q TakeQuery, sql string, args ...any) ([]candidate, error) {
	rows, err := tx.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var chosen []candidate
	size := 0
	for rows.Next() {
		var c candidate
		var engineIDs []byte
		var waited float64
		if err := rows.Scan(&c.Seq, &c.ID, &c.Body, &c.Attempts, &waited, &c.Traceparent, &c.awaited, &c.place, &engineIDs); err != nil {
			return nil, err
		}
		c.Waited = time.Duration(max(waited, 0) * float64(time.Second))
		if c.awaited {
			c.Body = withEngineIDs(c.Body, engineIDs)
		}
		size += len(c.Body)
		if q.MaxBytes > 0 && size > q.MaxBytes && len(chosen) > 0 {
			break
		}
		chosen = append(chosen, c)
	}
	rows.Close()
	return chosen, rows.Err()
}

// withEngineIDs appends the member engine_ids to a JSON object, unless there is nothing to say.
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
