package deliveries

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"storefront.internal/shared/ident"
	"storefront.internal/shared/pg"
)

// WorkerState is the state of the delivery worker.
type WorkerState string

// The states of the worker.
const (
	Running  WorkerState = "running"
	Blocked  WorkerState = "blocked"
	Disabled WorkerState = "disabled"
)

// View is the queue view.
type View struct {
	ReadAt      time.Time
	Worker      Worker
	Total       Stats
	Connections []Stats // by connection id; those with pending deliveries, or with dead ones in the window
}

// Worker is the state of delivery by the relays' last heartbeats.
type Worker struct {
	State     WorkerState
	BlockedAt time.Time // zero unless State is Blocked
}

// Stats are the figures of the whole queue, or of one connection.
type Stats struct {
	ConnectionID         ident.ConnectionID // "" in the total
	Pending              int64
	OldestPendingAt      time.Time // zero when nothing is pending
	OldestPendingSeconds int64
	DeadLast24h          int64
	UnconfirmedCreations int64
}

// selectView sums the counts and the deltas that are not folded yet. The dead letters of the last 24 hours
// are counted by minute, and one by one in the minute that the window cuts. The oldest entry is that of the
// lanes' oldest_at; for lanes without one, and for lanes that a delta is about to wake, the first entry is
// looked up. Waiting entries are not scanned.
const selectView = `
WITH span AS (
    SELECT now() - interval '24 hours' AS opens,
           date_trunc('minute', now() - interval '24 hours') + interval '1 minute' AS whole
), parts AS (
    SELECT connection_id, pending, unconfirmed, 0::bigint AS dead
    FROM delivery.counts
    WHERE kind = $1 AND (pending <> 0 OR unconfirmed <> 0)
    UNION ALL
    SELECT connection_id, pending, unconfirmed, CASE WHEN minute >= whole THEN dead ELSE 0 END
    FROM delivery.deltas, span
    WHERE kind = $1
    UNION ALL
    SELECT connection_id, 0, 0, m.dead
    FROM delivery.dead_minutes m, span
    WHERE m.kind = $1 AND m.minute >= span.whole
    UNION ALL
    SELECT connection_id, 0, 0, 1
    FROM delivery.dead d, span
    WHERE d.kind = $1 AND d.died_at > span.opens AND d.died_at < span.whole
), sums AS (
    SELECT connection_id, sum(pending)::bigint AS pending, sum(unconfirmed)::bigint AS unconfirmed,
        sum(dead)::bigint AS dead
    FROM parts
    GROUP BY connection_id
), known AS (
    SELECT connection_id, lane, oldest_at
    FROM delivery.lanes
    WHERE kind = $1 AND ready AND oldest_at > '-infinity'
), unknown AS (
    SELECT connection_id, lane
    FROM delivery.lanes
    WHERE kind = $1 AND ready AND oldest_at = '-infinity'
    UNION
    SELECT connection_id, n::smallint
    FROM (
        SELECT connection_id,
            bit_or(lanes) AS lanes FROM delivery.deltas WHERE kind = $1 GROUP BY connection_id
    ) filled
    CROSS JOIN generate_series(0, 7) AS n
    WHERE lanes & (1 << n) <> 0
    EXCEPT
    SELECT connection_id, lane FROM known
), oldest AS (
    SELECT connection_id, min(at) AS at
    FROM (
        SELECT connection_id, oldest_at AS at FROM known
        UNION ALL
        SELECT u.connection_id, head.created_at
        FROM unknown u
        CROSS JOIN LATERAL (
            SELECT e.created_at
            FROM delivery.entries e
            WHERE e.connection_id = u.connection_id AND e.kind = $1 AND e.lane = u.lane
            ORDER BY e.seq
            LIMIT 1
        ) head
    ) heads
    GROUP BY connection_id
)
SELECT s.connection_id, s.pending, s.unconfirmed, s.dead, CASE WHEN s.pending > 0 THEN o.at END, now()
FROM sums s
LEFT JOIN oldest o USING (connection_id)
WHERE s.pending <> 0 OR s.dead <> 0
ORDER BY s.connection_id`

const selectWorker = `SELECT state, blocked_at, now() FROM delivery.worker`

// View reads the queue of interactions in one snapshot. It takes no locks.
func (s *Store) View(ctx context.Context) (View, error) { return s.ViewOf(ctx, Interaction) }

// ViewOf is View for one kind; the relay exports metrics of envelopes too.
func (s *Store) ViewOf(ctx context.Context, k Kind) (View, error) {
	var v View
	snapshot := withOptions{s.pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}}
	err := pg.InTx(ctx, snapshot, func(tx pgx.Tx) error {
		var err error
		if v, err = readWorker(ctx, tx); err != nil {
			return err
		}
		rows, err := tx.Query(ctx, selectView, int16(k))
		if err != nil {
			return err
		}
		v.Connections, err = pgx.CollectRows(rows, scanStats)
		return err
	})
	if err != nil {
		return View{}, fmt.Errorf("read the queue of %ss: %w", k, err)
	}
	v.Total = total(v.Connections)
	return v, nil
}

func readWorker(ctx context.Context, tx pgx.Tx) (View, error) {
	var v View
	var blockedAt *time.Time
	if err := tx.QueryRow(ctx, selectWorker).Scan(&v.Worker.State, &blockedAt, &v.ReadAt); err != nil {
		return View{}, err
	}
	if v.Worker.State == Blocked && blockedAt != nil {
		v.Worker.BlockedAt = blockedAt.UTC()
	}
	v.ReadAt = v.ReadAt.UTC()
	return v, nil
}

func scanStats(row pgx.CollectableRow) (Stats, error) {
	var s Stats
	var oldest *time.Time
	var readAt time.Time
	err := row.Scan(&s.ConnectionID, &s.Pending, &s.UnconfirmedCreations, &s.DeadLast24h, &oldest, &readAt)
	if oldest != nil {
		s.OldestPendingAt = oldest.UTC()
		s.OldestPendingSeconds = max(0, int64(readAt.Sub(*oldest)/time.Second))
	}
	return s, err
}

func total(slices []Stats) Stats {
	var t Stats
	for _, s := range slices {
		t.Pending += s.Pending
		t.DeadLast24h += s.DeadLast24h
		t.UnconfirmedCreations += s.UnconfirmedCreations
		t.OldestPendingSeconds = max(t.OldestPendingSeconds, s.OldestPendingSeconds)
		if !s.OldestPendingAt.IsZero() &&
			(t.OldestPendingAt.IsZero() || s.OldestPendingAt.Before(t.OldestPendingAt)) {
			t.OldestPendingAt = s.OldestPendingAt
		}
	}
	return t
}
