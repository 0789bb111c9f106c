package deliveries

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// lockUndated waits for no lane, so that nobody who waits for it can wait for ever. It passes over lanes that were woken for what is
// delivered already.
const lockUndated = `
SELECT l.connection_id, l.kind, l.lane
FROM delivery.lanes l
CROSS JOIN LATERAL (
    SELECT
    FROM delivery.entries e
    WHERE e.connection_id = l.connection_id AND e.kind = l.kind AND e.lane = l.lane
    LIMIT 1
) waits
WHERE l.ready AND l.leased_by IS NULL AND l.oldest_at = '-infinity'
LIMIT $1
FOR UPDATE OF l SKIP LOCKED`

// dateLanes begins after the lanes are locked: until they are free again, nothing leaves them, and who moves an entry to an aside
// takes its date away.
const dateLanes = `
UPDATE delivery.lanes AS l
SET oldest_at = coalesce((
    SELECT e.created_at
    FROM delivery.entries e
    WHERE e.connection_id = l.connection_id AND e.kind = l.kind AND e.lane = l.lane
    ORDER BY e.seq
    LIMIT 1), '-infinity')
FROM unnest($1::text[], $2::smallint[], $3::smallint[]) AS locked (connection_id, kind, lane)
WHERE l.connection_id = locked.connection_id AND l.kind = locked.kind AND l.lane = locked.lane`

// dateLimit is how many lanes are dated at a time: their rows are locked for about as long as a turn takes.
const dateLimit = 500

// DateLanes writes down, for lanes that wait and do not know it, when their first entry was enqueued. A turn does the same when it
// gives its lane back; this is for lanes that wait for their first turn, for as long as that takes while the engine takes nothing.
// An entry that comes to stand before it afterwards, since its transaction was slow to commit, is not told until the next turn.
// more says that another call may find others.
func (s *Store) DateLanes(ctx context.Context) (more bool, err error) {
	err = s.inTurn(ctx, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, lockUndated, dateLimit)
		if err != nil {
			return err
		}
		var connection string
		var kind, lane int16
		var connections []string
		var kinds, lanes []int16
		_, err = pgx.ForEachRow(rows, []any{&connection, &kind, &lane}, func() error {
			connections, kinds, lanes = append(connections, connection), append(kinds, kind), append(lanes, lane)
			return nil
		})
		if err != nil || len(lanes) == 0 {
			return err
		}
		more = len(lanes) == dateLimit
		_, err = tx.Exec(ctx, dateLanes, connections, kinds, lanes)
		return err
	})
	if err != nil {
		return false, fmt.Errorf("date the lanes: %w", err)
	}
	return more, nil
}
