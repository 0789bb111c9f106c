package deliveries

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// dateLanes looks up the first entries before it locks a lane. The fence tells whether the lane was in a turn meanwhile, and
// nothing leaves a lane but in a turn. It waits for no lane, so that nobody who waits for it can wait for ever.
const dateLanes = `
WITH first AS MATERIALIZED (
    SELECT l.connection_id, l.kind, l.lane, l.fence, head.created_at
    FROM delivery.lanes l
    CROSS JOIN LATERAL (
        SELECT e.created_at
        FROM delivery.entries e
        WHERE e.connection_id = l.connection_id AND e.kind = l.kind AND e.lane = l.lane
        ORDER BY e.seq
        LIMIT 1
    ) head
    WHERE l.ready AND l.leased_by IS NULL AND l.oldest_at = '-infinity'
    LIMIT $1
), free AS MATERIALIZED (
    SELECT l.connection_id, l.kind, l.lane, first.created_at
    FROM first
    JOIN delivery.lanes l USING (connection_id, kind, lane)
    WHERE l.fence = first.fence AND l.ready AND l.leased_by IS NULL AND l.oldest_at = '-infinity'
    FOR UPDATE OF l SKIP LOCKED
)
UPDATE delivery.lanes AS l
SET oldest_at = free.created_at
FROM free
WHERE l.connection_id = free.connection_id AND l.kind = free.kind AND l.lane = free.lane`

// dateLimit is how many lanes are dated at a time: their rows are locked for about as long as a turn takes.
const dateLimit = 500

// DateLanes writes down, for lanes that wait and do not know it, when their first entry was enqueued. A turn does the same when it
// gives its lane back; this is for lanes that wait for their first turn, for as long as that takes while the engine takes nothing.
// An entry that comes to stand before it afterwards, since its transaction was slow to commit, is not told until the next turn.
// more says that another call may find others.
func (s *Store) DateLanes(ctx context.Context) (more bool, err error) {
	err = s.inTurn(ctx, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, dateLanes, dateLimit)
		more = tag.RowsAffected() == dateLimit
		return err
	})
	if err != nil {
		return false, fmt.Errorf("date the lanes: %w", err)
	}
	return more, nil
}
