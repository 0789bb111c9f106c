package deliveries

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// lockLanesWithoutHead skips locked rows, so it never waits for a lane and cannot take part in a deadlock. It
// leaves out lanes that are ready but empty.
const lockLanesWithoutHead = `
SELECT l.connection_id, l.kind, l.lane
FROM delivery.lanes l
CROSS JOIN LATERAL (
    SELECT
    FROM delivery.entries e
    WHERE e.connection_id = l.connection_id AND e.kind = l.kind AND e.lane = l.lane
    LIMIT 1
) waiting
WHERE l.ready AND l.leased_by IS NULL AND l.oldest_at = '-infinity'
  AND (l.lane >= 8 OR l.not_before <= now() - $2::interval)
LIMIT $1
FOR UPDATE OF l SKIP LOCKED`

// refreshLaneHeads is a statement of its own, so that its snapshot is younger than the locks. While they are
// held no entry leaves the lanes, and a completion that moves an entry to a retry lane resets that lane's
// oldest_at.
const refreshLaneHeads = `
UPDATE delivery.lanes AS l
SET oldest_at = coalesce((
    SELECT e.created_at
    FROM delivery.entries e
    WHERE e.connection_id = l.connection_id AND e.kind = l.kind AND e.lane = l.lane
    ORDER BY e.seq
    LIMIT 1), '-infinity')
FROM unnest($1::text[], $2::smallint[], $3::smallint[]) AS locked (connection_id, kind, lane)
WHERE l.connection_id = locked.connection_id AND l.kind = locked.kind AND l.lane = locked.lane`

// refreshLimit bounds the lanes of one transaction: their rows are locked about as long as for a lease.
const refreshLimit = 500

// RefreshLaneHeads stores the time of the first entry for waiting lanes that lack it, so that the queue view
// need not look it up. Complete does the same for the lane that it releases; RefreshLaneHeads serves lanes
// that wait for their first lease, which takes long while the engine is down. An entry that appears in front
// later, because its transaction committed late, is not seen until the next lease. more says that another
// call may find more lanes.
//
// It leaves out lanes that were woken less than the given time ago: most of them are served at once.
func (s *Store) RefreshLaneHeads(ctx context.Context, after time.Duration) (more bool, err error) {
	err = s.withQueuePlanner(ctx, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, lockLanesWithoutHead, refreshLimit, after)
		if err != nil {
			return err
		}
		var connection string
		var kind, lane int16
		var connections []string
		var kinds, lanes []int16
		_, err = pgx.ForEachRow(rows, []any{&connection, &kind, &lane}, func() error {
			connections = append(connections, connection)
			kinds, lanes = append(kinds, kind), append(lanes, lane)
			return nil
		})
		if err != nil || len(lanes) == 0 {
			return err
		}
		more = len(lanes) == refreshLimit
		_, err = tx.Exec(ctx, refreshLaneHeads, connections, kinds, lanes)
		return err
	})
	if err != nil {
		return false, fmt.Errorf("refresh the lane heads: %w", err)
	}
	return more, nil
}
