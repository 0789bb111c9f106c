package deliveries

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"storefront.internal/shared/ident"
	"storefront.internal/shared/pg"
)

// Redaction removes personal data from the interactions of a connection, both waiting and dead-lettered. It
// is the one exception to the rule that a delivery keeps its bytes, and it covers entries that were sent
// without an answer too.
//
// A delivery may move meanwhile: it is dead-lettered, replayed, or moved to a retry lane. So the calls have
// this order:
//
//	HighWater ─▶ RedactDead (all pages) ─▶ RedactWaiting (all pages) ─▶ RedactRemaining
//	          ─▶ AnyActive, until it is false
//
// RedactRemaining locks all lanes, so that no entry leaves a lane, and redacts what moved since HighWater.
// After that no row holds the data, unless it is enqueued with it; after AnyActive no worker has it in
// memory.
type Redaction struct {
	ConnectionID ident.ConnectionID
	// Patterns select the bodies: those that contain one of them.
	Patterns [][]byte
	// Body returns the new body of a delivery that was enqueued at that time, nil to keep the body.
	Body func(body []byte, enqueued time.Time) []byte
	// Chunk is how many rows a transaction examines.
	Chunk int
}

// HighWaterMark is a moment of the queue: the greatest sequence number, and the time.
type HighWaterMark struct {
	seq int64
	at  time.Time
}

// Cursor is where the next page begins; the zero value begins with the first.
type Cursor struct {
	lane int16
	seq  int64
	id   string
}

// ActiveLease is a lease that began before the redaction ended.
type ActiveLease struct {
	Lane  int16
	Fence int64
}

// completionMargin is how long before the high-water mark a completion may have begun that commits after it.
const completionMargin = 10 * time.Minute

const selectHighWater = `
SELECT coalesce(max(last.seq), 0), now()
FROM generate_series(0, 15) AS n
CROSS JOIN LATERAL (
    SELECT max(e.seq) AS seq FROM delivery.entries e WHERE e.connection_id = $1 AND e.kind = 1
        AND e.lane = n::smallint
) last`

// HighWater is called before the other steps.
func (s *Store) HighWater(ctx context.Context, c ident.ConnectionID) (m HighWaterMark, err error) {
	if err = s.pool.QueryRow(ctx, selectHighWater, c).Scan(&m.seq, &m.at); err != nil {
		err = fmt.Errorf("read the high-water mark of the queue: %w", err)
	}
	return m, err
}

const (
	matchingBody = `
    CASE WHEN EXISTS (SELECT FROM unnest($2::bytea[]) AS pattern WHERE position(pattern IN body) > 0)
        THEN body END`

	selectDeadPage = `
SELECT 0::smallint, 0::bigint, id, created_at, ` + matchingBody + `
FROM delivery.dead
WHERE connection_id = $1 AND kind = 1 AND id > $3
ORDER BY id
LIMIT $4`

	selectNewlyDead = `
SELECT 0::smallint, 0::bigint, id, created_at, ` + matchingBody + `
FROM delivery.dead
WHERE connection_id = $1 AND kind = 1 AND died_at >= $3`

	selectLanePage = `
SELECT lane, seq, id, created_at, ` + matchingBody + `
FROM delivery.entries
WHERE connection_id = $1 AND kind = 1 AND lane = $3 AND seq > $4
ORDER BY seq
LIMIT $5`

	selectNewlyWaiting = `
SELECT e.lane, e.seq, e.id, e.created_at, ` + matchingBody + `
FROM generate_series(0, 15) AS n
CROSS JOIN LATERAL (
    SELECT lane, seq, id, created_at, body
    FROM delivery.entries
    WHERE connection_id = $1 AND kind = 1 AND lane = n::smallint AND seq > $3
) e`

	updateDeadBodies = `
UPDATE delivery.dead AS d
SET body = f.body
FROM unnest($2::text[], $3::bytea[]) AS f (id, body)
WHERE d.connection_id = $1 AND d.kind = 1 AND d.id = f.id`

	updateWaitingBodies = `
UPDATE delivery.entries AS e
SET body = f.body
FROM unnest($2::smallint[], $4::bigint[], $3::bytea[]) AS f (lane, seq, body)
WHERE e.connection_id = $1 AND e.kind = 1 AND e.lane = f.lane AND e.seq ` + seqRange + ` AND e.seq = f.seq`
)

// RedactDead redacts the next page of dead letters. more is false after the last one.
func (s *Store) RedactDead(
	ctx context.Context, r Redaction, from Cursor,
) (next Cursor, more bool, err error) {
	err = s.redact(ctx, func(tx pgx.Tx) error {
		page, err := r.dead(ctx, tx, selectDeadPage, from.id, r.Chunk)
		next, more = page.last, page.examined == r.Chunk
		return err
	})
	return next, more, err
}

// RedactWaiting redacts the next page of what waits. Lanes come before their retry lanes, since entries move
// that way only.
func (s *Store) RedactWaiting(
	ctx context.Context, r Redaction, from Cursor,
) (next Cursor, more bool, err error) {
	err = s.redact(ctx, func(tx pgx.Tx) error {
		if err := lockLanes(ctx, tx, r.ConnectionID, from.lane, from.lane); err != nil {
			return err
		}
		page, err := r.waiting(ctx, tx, selectLanePage, from.lane, from.seq, r.Chunk)
		next, more = page.last, true
		if page.examined < r.Chunk {
			next, more = Cursor{lane: from.lane + 1}, from.lane < topLane
		}
		return err
	})
	return next, more, err
}

const selectActiveLeases = `
SELECT lane, fence
FROM delivery.lanes
WHERE connection_id = $1 AND kind = 1 AND leased_by IS NOT NULL AND leased_until > now()
    AND cardinality(flight) > 0`

// RedactRemaining redacts what moved since the high-water mark, and returns the leases whose holders may
// still send the old bodies. Dead letters come first: a replay of one of them commits before the dead letter
// can be updated, and so before the waiting entries are read.
func (s *Store) RedactRemaining(
	ctx context.Context, r Redaction, m HighWaterMark,
) (active []ActiveLease, err error) {
	err = s.redact(ctx, func(tx pgx.Tx) error {
		if err := lockLanes(ctx, tx, r.ConnectionID, 0, topLane); err != nil {
			return err
		}
		if _, err := r.dead(ctx, tx, selectNewlyDead, m.at.Add(-completionMargin)); err != nil {
			return err
		}
		if _, err := r.waiting(ctx, tx, selectNewlyWaiting, m.seq); err != nil {
			return err
		}
		rows, err := tx.Query(ctx, selectActiveLeases, r.ConnectionID)
		if err != nil {
			return err
		}
		active, err = pgx.CollectRows(rows, pgx.RowToStructByPos[ActiveLease])
		return err
	})
	return active, err
}

const anyActive = `
SELECT EXISTS (
    SELECT FROM delivery.lanes l
    JOIN unnest($2::smallint[], $3::bigint[]) AS s (lane, fence) USING (lane, fence)
    WHERE l.connection_id = $1 AND l.kind = 1 AND l.leased_by IS NOT NULL AND l.leased_until > now())`

// AnyActive reports whether one of the leases is still held.
func (s *Store) AnyActive(
	ctx context.Context, c ident.ConnectionID, leases []ActiveLease,
) (active bool, err error) {
	lanes := pg.Column(len(leases), func(i int) int16 { return leases[i].Lane })
	fences := pg.Column(len(leases), func(i int) int64 { return leases[i].Fence })
	if err = s.pool.QueryRow(ctx, anyActive, c, lanes, fences).Scan(&active); err != nil {
		err = fmt.Errorf("read the leases: %w", err)
	}
	return active, err
}

func (s *Store) redact(ctx context.Context, fn func(pgx.Tx) error) error {
	if err := pg.InTx(ctx, s.pool, fn); err != nil {
		return fmt.Errorf("redact deliveries: %w", err)
	}
	return nil
}

// lockLanesSQL locks a range of lanes and creates those that are missing, asleep. It does both in one
// ascending pass: Complete and Compact too lock and create lanes in ascending order, so none of them waits
// for another in a circle.
const lockLanesSQL = `
INSERT INTO delivery.lanes AS l (connection_id, kind, lane, ready)
SELECT $1, 1, n, false FROM generate_series($2::integer, $3::integer) AS n ORDER BY n
ON CONFLICT (connection_id, kind, lane) DO UPDATE SET ready = l.ready WHERE false`

// lockLanes keeps workers from reading bodies that they write back, and entries from leaving the lanes.
func lockLanes(ctx context.Context, tx pgx.Tx, c ident.ConnectionID, first, last int16) error {
	_, err := tx.Exec(ctx, lockLanesSQL, c, first, last)
	return err
}

// redactedPage is rows with their new bodies.
type redactedPage struct {
	examined int
	last     Cursor // the last row examined
	lanes    []int16
	seqs     []int64
	ids      []string
	bodies   [][]byte
}

func (r Redaction) find(
	ctx context.Context, tx pgx.Tx, sql string, args []any,
) (page redactedPage, err error) {
	rows, err := tx.Query(ctx, sql, append([]any{r.ConnectionID, r.Patterns}, args...)...)
	if err != nil {
		return page, err
	}
	var at Cursor
	var enqueued time.Time
	var body []byte
	_, err = pgx.ForEachRow(rows, []any{&at.lane, &at.seq, &at.id, &enqueued, &body}, func() error {
		page.examined++
		page.last = at
		if body == nil {
			return nil
		}
		if changed := r.Body(body, enqueued); changed != nil {
			page.lanes, page.seqs = append(page.lanes, at.lane), append(page.seqs, at.seq)
			page.ids, page.bodies = append(page.ids, at.id), append(page.bodies, changed)
		}
		return nil
	})
	return page, err
}

func (r Redaction) dead(ctx context.Context, tx pgx.Tx, sql string, args ...any) (redactedPage, error) {
	page, err := r.find(ctx, tx, sql, args)
	if err == nil && len(page.ids) > 0 {
		_, err = tx.Exec(ctx, updateDeadBodies, r.ConnectionID, page.ids, page.bodies)
	}
	return page, err
}

func (r Redaction) waiting(ctx context.Context, tx pgx.Tx, sql string, args ...any) (redactedPage, error) {
	page, err := r.find(ctx, tx, sql, args)
	if err == nil && len(page.seqs) > 0 {
		_, err = tx.Exec(ctx, updateWaitingBodies, r.ConnectionID, page.lanes, page.bodies, page.seqs)
	}
	return page, err
}
