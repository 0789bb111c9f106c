package deliveries

import (
	"context"
	"fmt"
)

// compact folds deltas into the counts and wakes lanes, in one statement. ON CONFLICT locks a lane's row
// before it checks the row, so a lane that is being put to sleep is woken after that. The first entry of a
// woken lane is unknown, so oldest_at is reset; not_before says when it was woken. All statements take rows
// in the order of their keys, so concurrent calls do not deadlock.
const compact = `
WITH gone AS (
    DELETE FROM delivery.deltas
    WHERE delta_id IN (SELECT delta_id FROM delivery.deltas ORDER BY delta_id LIMIT $1 FOR UPDATE SKIP LOCKED)
    RETURNING connection_id, kind, pending, unconfirmed, dead, minute, lanes
), sums AS (
    SELECT connection_id, kind, sum(pending) AS pending, sum(unconfirmed) AS unconfirmed,
        bit_or(lanes) AS lanes
    FROM gone
    GROUP BY connection_id, kind
), counted AS (
    INSERT INTO delivery.counts AS c (connection_id, kind, pending, unconfirmed)
    SELECT connection_id, kind, pending, unconfirmed
    FROM sums
    WHERE pending <> 0 OR unconfirmed <> 0
    ORDER BY connection_id, kind
    ON CONFLICT (connection_id, kind) DO UPDATE
    SET pending = c.pending + excluded.pending, unconfirmed = c.unconfirmed + excluded.unconfirmed
), dead AS (
    INSERT INTO delivery.dead_minutes AS m (minute, connection_id, kind, dead)
    SELECT minute, connection_id, kind, sum(dead)
    FROM gone
    WHERE minute IS NOT NULL
    GROUP BY minute, connection_id, kind
    ORDER BY minute, kind, connection_id
    ON CONFLICT (minute, kind, connection_id) DO UPDATE SET dead = m.dead + excluded.dead
), woken AS (
    INSERT INTO delivery.lanes AS l (connection_id, kind, lane, ready, not_before)
    SELECT s.connection_id, s.kind, n, true, now()
    FROM sums s
    CROSS JOIN LATERAL generate_series(0, CASE WHEN s.lanes = 0 THEN -1 ELSE 7 END) AS n
    WHERE s.lanes & (1 << n) <> 0
    ORDER BY s.connection_id, s.kind, n
    ON CONFLICT (connection_id, kind, lane) DO UPDATE
    SET ready = true, oldest_at = '-infinity', not_before = greatest(l.not_before, excluded.not_before)
    WHERE NOT l.ready
    RETURNING 1
)
SELECT (SELECT count(*) FROM gone), (SELECT count(*) FROM woken)`

// compactLimit is how many deltas one call folds.
const compactLimit = 10000

// Compacted counts what Compact did.
type Compacted struct {
	Deltas int // folded
	Woken  int // lanes that were asleep or did not exist
}

// More reports whether another call would find deltas at once.
func (c Compacted) More() bool { return c.Deltas == compactLimit }

// Compact folds the deltas of committed transactions into the counts, and wakes the lanes that they filled.
func (s *Store) Compact(ctx context.Context) (Compacted, error) {
	var c Compacted
	if err := s.pool.QueryRow(ctx, compact, compactLimit).Scan(&c.Deltas, &c.Woken); err != nil {
		return c, fmt.Errorf("compact the deltas: %w", err)
	}
	return c, nil
}
