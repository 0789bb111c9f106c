package deliveries

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"storefront.internal/shared/pg"
)

// compact folds deltas into the counts and wakes lanes, in one statement. ON CONFLICT locks a lane's row
// before it checks the row, so a lane that is being put to sleep is woken after that. The first entry of a
// woken lane is unknown, so oldest_at is reset; not_before says when it was woken. All statements take rows
// in the order of their keys, so concurrent calls do not deadlock. The deltas of the connections of $2 stay.
const compact = `
WITH gone AS (
    DELETE FROM delivery.deltas
    WHERE delta_id IN (SELECT delta_id FROM delivery.deltas WHERE connection_id <> ALL ($2::text[])
        ORDER BY delta_id LIMIT $1 FOR UPDATE SKIP LOCKED)
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

// compactLimit is how many deltas one call folds. It waits for a lane no longer than compactLockTimeout,
// since the lanes of all connections wait with it: a redaction holds those of one connection for seconds.
const (
	compactLimit       = 10000
	compactLockTimeout = 200 * time.Millisecond
)

// Compacted counts what Compact did.
type Compacted struct {
	Deltas int // folded
	Woken  int // lanes that were asleep or did not exist
}

// More reports whether another call would find deltas at once.
func (c Compacted) More() bool { return c.Deltas == compactLimit }

// Compact folds the deltas of committed transactions into the counts, and wakes the lanes that they filled.
// It leaves the deltas of connections whose lanes stay locked to a later call.
func (s *Store) Compact(ctx context.Context) (c Compacted, err error) {
	locked := []string{}
	for patient := false; ; {
		c, err = s.compactExcept(ctx, locked, patient)
		if patient || pg.SQLState(err) != pg.LockNotAvailable {
			break
		}
		var found []string
		if found, err = s.lockedConnections(ctx, locked); err != nil {
			break
		}
		locked = append(locked, found...)
		patient = len(found) == 0 // it is no lane that is locked
	}
	if err != nil {
		err = fmt.Errorf("compact the deltas: %w", err)
	}
	return c, err
}

// setLockTimeout holds until the end of the transaction, which is that of the batch.
const setLockTimeout = `SELECT set_config('lock_timeout', $1, true)`

// compactExcept leaves the deltas of some connections. If it is patient, it waits for locks as every other
// statement does.
func (s *Store) compactExcept(ctx context.Context, locked []string, patient bool) (c Compacted, err error) {
	b := &pgx.Batch{}
	if !patient {
		b.Queue(setLockTimeout, compactLockTimeout.String())
	}
	b.Queue(compact, compactLimit, locked).QueryRow(func(row pgx.Row) error {
		return row.Scan(&c.Deltas, &c.Woken)
	})
	err = s.pool.SendBatch(ctx, b).Close()
	return c, err
}

// selectLocked returns the connections, of the deltas that the next call would fold, with a lane that another
// transaction holds.
const selectLocked = `
WITH next AS (
    SELECT connection_id
    FROM delivery.deltas
    WHERE connection_id <> ALL ($2::text[])
    ORDER BY delta_id
    LIMIT $1
), free AS (
    SELECT connection_id, kind, lane
    FROM delivery.lanes
    WHERE lane < 8 AND connection_id IN (SELECT connection_id FROM next)
    FOR SHARE SKIP LOCKED
)
SELECT DISTINCT l.connection_id
FROM delivery.lanes l
WHERE l.lane < 8 AND l.connection_id IN (SELECT connection_id FROM next)
    AND NOT EXISTS (SELECT FROM free f
        WHERE f.connection_id = l.connection_id AND f.kind = l.kind AND f.lane = l.lane)`

func (s *Store) lockedConnections(ctx context.Context, known []string) ([]string, error) {
	rows, err := s.pool.Query(ctx, selectLocked, compactLimit, known)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}
