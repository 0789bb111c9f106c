package deliveries

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"storefront.internal/shared/fault"
	"storefront.internal/shared/ident"
	"storefront.internal/shared/pg"
)

// replayChunk is how many dead letters one transaction of a replay moves: tens of milliseconds of work, far
// from any statement timeout.
const replayChunk = 2000

// ReplayQuery selects dead letters of one kind by connection, by ids, or by both.
type ReplayQuery struct {
	Kind         Kind // Interaction when zero
	ConnectionID ident.ConnectionID
	IDs          []string // of signals or of observations
}

// The dead letters of the next transaction, in the order of their death. Those that died after the replay
// began stay: the engine may reject again what this replay put back, and the replay would never end. Each
// transaction begins behind the last row of the one before, which spares a scan of index entries that are
// already deleted.
const (
	pickOfConnection = `
    SELECT connection_id, kind, id, died_at
    FROM delivery.dead
    WHERE kind = @kind AND connection_id = @connection AND died_at <= @began
        AND (died_at, id) > (@last_at, @last_id)
    ORDER BY died_at, id
    LIMIT @chunk`

	pickByIDs = `
    SELECT connection_id, kind, id, died_at
    FROM delivery.dead
    WHERE kind = @kind AND (@connection = '' OR connection_id = @connection) AND id = ANY (@ids)
        AND died_at <= @began AND (died_at, connection_id, id) > (@last_at, @last_connection, @last_id)
    ORDER BY died_at, connection_id, id
    LIMIT @chunk`
)

// replaySQL moves the picked rows back, as new entries at the end of the queue, without attempts and
// failures. Of two replays that pick a row at once, the second waits for the first and finds the row gone.
func replaySQL(pick string) string {
	return `
WITH picked AS MATERIALIZED (` + pick + `
), gone AS (
    DELETE FROM delivery.dead d
    USING picked p
    WHERE d.connection_id = p.connection_id AND d.kind = p.kind AND d.id = p.id AND d.died_at = p.died_at
    RETURNING d.connection_id, d.kind, d.id, d.lane, d.body, d.died_at
), back AS (
    INSERT INTO delivery.entries (connection_id, kind, lane, id, body)
    SELECT connection_id, kind, lane, id, body
    FROM gone
    ORDER BY died_at, id
), counted AS (
    INSERT INTO delivery.deltas (connection_id, kind, pending, dead, minute, lanes)
    SELECT connection_id, kind, count(*), -count(*), date_trunc('minute', died_at),
        bit_or(1::smallint << lane::integer)
    FROM gone
    GROUP BY connection_id, kind, date_trunc('minute', died_at)
)
SELECT (SELECT count(*) FROM gone), count(*) OVER (), died_at, connection_id, id
FROM picked
ORDER BY died_at DESC, connection_id DESC, id DESC
LIMIT 1`
}

// ReplayDead moves dead letters back to the queue and returns how many. It ignores ids that have no dead
// letter. It works in transactions of at most replayChunk rows; when one fails, those before it stay done,
// and the same call goes on with the rest.
func (s *Store) ReplayDead(ctx context.Context, q ReplayQuery) (int, error) {
	if q.ConnectionID == "" && len(q.IDs) == 0 {
		return 0, fault.New(fault.InvalidRequest, "connection_id or signal_ids must be given")
	}
	r := replay{sql: replaySQL(pickOfConnection), args: pgx.NamedArgs{
		"kind": int16(cmp.Or(q.Kind, Interaction)), "connection": string(q.ConnectionID), "ids": q.IDs,
		"last_at": "-infinity", "last_connection": "", "last_id": "", "chunk": replayChunk,
	}}
	if len(q.IDs) > 0 {
		r.sql = replaySQL(pickByIDs)
	}
	var began time.Time
	err := s.pool.QueryRow(ctx, `SELECT now()`).Scan(&began)
	r.args["began"] = began
	for more := true; err == nil && more; {
		more, err = r.next(ctx, pg.CustomPlans(s.pool))
	}
	if err != nil {
		return r.moved, fmt.Errorf("replay dead letters, after %d: %w", r.moved, err)
	}
	return r.moved, nil
}

// replay is one call of ReplayDead.
type replay struct {
	sql   string
	args  pgx.NamedArgs
	moved int
}

// next moves the next rows. more is false after the last ones.
func (r *replay) next(ctx context.Context, db pg.Beginner) (more bool, err error) {
	var moved, picked int
	var at time.Time
	var connection, id string
	err = pg.RetryTx(ctx, db, func(tx pgx.Tx) error {
		err := tx.QueryRow(ctx, r.sql, r.args).Scan(&moved, &picked, &at, &connection, &id)
		if errors.Is(err, pgx.ErrNoRows) {
			moved, picked = 0, 0
			return nil
		}
		return err
	})
	if err != nil {
		return false, err
	}
	r.moved += moved
	r.args["last_at"], r.args["last_connection"], r.args["last_id"] = at, connection, id
	return picked == replayChunk, nil
}
