package deliveries

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

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

// selectSums adds the deltas that are not folded yet to the counts. The dead letters of the last 24 hours are
// counted by minute, and one by one in the minute that the window cuts. The counts, a row a connection, are
// neither grouped nor sorted.
const selectSums = `
WITH span AS (
    SELECT now() - interval '24 hours' AS opens,
           date_trunc('minute', now() - interval '24 hours') + interval '1 minute' AS whole
), parts AS (
    SELECT connection_id, pending, unconfirmed, CASE WHEN minute >= whole THEN dead ELSE 0 END AS dead
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
    SELECT connection_id, coalesce(c.pending, 0) + coalesce(p.pending, 0) AS pending,
        coalesce(c.unconfirmed, 0) + coalesce(p.unconfirmed, 0) AS unconfirmed, coalesce(p.dead, 0) AS dead
    FROM (
        SELECT connection_id, pending, unconfirmed
        FROM delivery.counts
        WHERE kind = $1 AND (pending <> 0 OR unconfirmed <> 0)
    ) c
    FULL JOIN (
        SELECT connection_id, sum(pending)::bigint AS pending, sum(unconfirmed)::bigint AS unconfirmed,
            sum(dead)::bigint AS dead
        FROM parts
        GROUP BY connection_id
    ) p USING (connection_id)
)
SELECT connection_id, pending, unconfirmed, dead
FROM sums
WHERE pending <> 0 OR dead <> 0`

// selectOldest returns the oldest waiting entries of connections: that of the lanes' oldest_at; for lanes
// without one, and for lanes that a delta is about to wake, the first entry is looked up. A connection may
// have several rows. Waiting entries are not scanned.
const selectOldest = `
WITH woken AS (
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
        AND NOT EXISTS (
            SELECT FROM delivery.lanes l
            WHERE l.connection_id = filled.connection_id AND l.kind = $1 AND l.lane = n AND l.ready
                AND l.oldest_at > '-infinity'
        )
)
SELECT connection_id, min(oldest_at)
FROM delivery.lanes
WHERE kind = $1 AND ready AND oldest_at > '-infinity'
GROUP BY connection_id
UNION ALL
SELECT w.connection_id, head.created_at
FROM woken w
CROSS JOIN LATERAL (
    SELECT e.created_at
    FROM delivery.entries e
    WHERE e.connection_id = w.connection_id AND e.kind = $1 AND e.lane = w.lane
    ORDER BY e.seq
    LIMIT 1
) head`

const selectWorker = `SELECT state, blocked_at, now() FROM delivery.worker`

// View reads the queue of interactions in one snapshot. It takes no locks.
func (s *Store) View(ctx context.Context) (View, error) { return s.ViewOf(ctx, Interaction) }

// ViewOf is View for one kind; the relay exports metrics of envelopes too.
func (s *Store) ViewOf(ctx context.Context, k Kind) (v View, err error) {
	snapshot := withOptions{s.pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}}
	err = pg.InTx(ctx, snapshot, func(tx pgx.Tx) error { return v.read(ctx, tx, k) })
	if err != nil {
		return View{}, fmt.Errorf("read the queue of %ss: %w", k, err)
	}
	slices.SortFunc(v.Connections, func(a, b Stats) int {
		return cmp.Compare(a.ConnectionID, b.ConnectionID)
	})
	v.Total = total(v.Connections)
	return v, nil
}

func (v *View) read(ctx context.Context, tx pgx.Tx, k Kind) (err error) {
	if *v, err = readWorker(ctx, tx); err != nil {
		return err
	}
	rows, err := tx.Query(ctx, selectSums, int16(k))
	if err != nil {
		return err
	}
	if v.Connections, err = pgx.CollectRows(rows, scanSums); err != nil {
		return err
	}
	if rows, err = tx.Query(ctx, selectOldest, int16(k)); err != nil {
		return err
	}
	return v.readOldest(rows)
}

func scanSums(row pgx.CollectableRow) (s Stats, err error) {
	return s, row.Scan((*string)(&s.ConnectionID), &s.Pending, &s.UnconfirmedCreations, &s.DeadLast24h)
}

// readOldest adds the rows of selectOldest to the connections with pending deliveries.
func (v *View) readOldest(rows pgx.Rows) error {
	pending := make(map[string]*Stats, len(v.Connections))
	for i := range v.Connections {
		if s := &v.Connections[i]; s.Pending > 0 {
			pending[string(s.ConnectionID)] = s
		}
	}
	var connection pgtype.DriverBytes // not copied
	var at time.Time
	_, err := pgx.ForEachRow(rows, []any{&connection, &at}, func() error {
		s := pending[string(connection)]
		if s != nil && (s.OldestPendingAt.IsZero() || at.Before(s.OldestPendingAt)) {
			s.OldestPendingAt = at.UTC()
			s.OldestPendingSeconds = max(0, int64(v.ReadAt.Sub(at)/time.Second))
		}
		return nil
	})
	return err
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
