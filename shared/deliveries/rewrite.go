package deliveries

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"storefront.internal/shared/ident"
)

// Rewrite takes personal data out of the interactions of a connection, wherever they wait or lie dead. It is the one
// exception to the rule that a delivery keeps its bytes, and it holds for what was sent and not answered too.
//
// A delivery may move meanwhile: it dies, is replayed, or goes aside. So the passes are made in this order:
//
//	Mark ─▶ RewriteDead (all) ─▶ RewriteWaiting (all) ─▶ RewriteRest ─▶ Sending, until it is false
//
// RewriteRest holds every lane, so nothing dies or goes aside then, and sees what moved since the mark. After that no row
// holds what was taken out, unless it is enqueued with it; after Sending nobody has it in hand any more.
type Rewrite struct {
	ConnectionID ident.ConnectionID
	// Needles choose what is looked at: bodies that hold one of them.
	Needles [][]byte
	// Body returns the new body of a delivery that was enqueued at that time, nil to leave it.
	Body func(body []byte, enqueued time.Time) []byte
	// Chunk is how many rows a transaction looks at.
	Chunk int
}

// Mark is a moment of the queue.
type Mark struct {
	seq int64
	at  time.Time
}

// Place is where a pass over the waiting or over the dead goes on; the zero value is its begin.
type Place struct {
	lane int16
	seq  int64
	id   string
}

// Sent is a lease that began before the rewriting ended.
type Sent struct {
	Lane  int16
	Fence int64
}

// settleMargin is how long before a mark a settlement may have begun that commits after it.
const settleMargin = 10 * time.Minute

const selectMark = `
SELECT coalesce(max(last.seq), 0), now()
FROM generate_series(0, 15) AS n
CROSS JOIN LATERAL (
    SELECT max(e.seq) AS seq FROM delivery.entries e WHERE e.connection_id = $1 AND e.kind = 1 AND e.lane = n::smallint
) last`

// Mark is taken before the passes begin.
func (s *Store) Mark(ctx context.Context, c ident.ConnectionID) (m Mark, err error) {
	if err = s.pool.QueryRow(ctx, selectMark, c).Scan(&m.seq, &m.at); err != nil {
		err = fmt.Errorf("mark the queue: %w", err)
	}
	return m, err
}

const (
	holds = `CASE WHEN EXISTS (SELECT FROM unnest($2::bytea[]) AS needle WHERE position(needle IN body) > 0) THEN body END`

	partOfDead = `
SELECT 0::smallint, 0::bigint, id, created_at, ` + holds + `
FROM delivery.dead
WHERE connection_id = $1 AND kind = 1 AND id > $3
ORDER BY id
LIMIT $4`

	newlyDead = `
SELECT 0::smallint, 0::bigint, id, created_at, ` + holds + `
FROM delivery.dead
WHERE connection_id = $1 AND kind = 1 AND died_at >= $3`

	partOfLane = `
SELECT lane, seq, id, created_at, ` + holds + `
FROM delivery.entries
WHERE connection_id = $1 AND kind = 1 AND lane = $3 AND seq > $4
ORDER BY seq
LIMIT $5`

	newlyWaiting = `
SELECT e.lane, e.seq, e.id, e.created_at, ` + holds + `
FROM generate_series(0, 15) AS n
CROSS JOIN LATERAL (
    SELECT lane, seq, id, created_at, body
    FROM delivery.entries
    WHERE connection_id = $1 AND kind = 1 AND lane = n::smallint AND seq > $3
) e`

	rewriteDead = `
UPDATE delivery.dead AS d
SET body = f.body
FROM unnest($2::text[], $3::bytea[]) AS f (id, body)
WHERE d.connection_id = $1 AND d.kind = 1 AND d.id = f.id`

	rewriteWaiting = `
UPDATE delivery.entries AS e
SET body = f.body
FROM unnest($2::smallint[], $4::bigint[], $3::bytea[]) AS f (lane, seq, body)
WHERE e.connection_id = $1 AND e.kind = 1 AND e.lane = f.lane AND e.seq ` + near + ` AND e.seq = f.seq`
)

// RewriteDead rewrites the next of the dead. more is false when there are none behind it.
func (s *Store) RewriteDead(ctx context.Context, r Rewrite, from Place) (next Place, more bool, err error) {
	err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		looked, found, err := r.look(ctx, tx, partOfDead, from.id, r.Chunk)
		next, more = found.last, looked == r.Chunk
		if err != nil {
			return err
		}
		return r.dead(ctx, tx, found)
	})
	return next, more, wrapRewrite(err)
}

// RewriteWaiting rewrites the next of what waits: lanes in order before their asides, as rows move that way only.
func (s *Store) RewriteWaiting(ctx context.Context, r Rewrite, from Place) (next Place, more bool, err error) {
	err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		if err := holdLanes(ctx, tx, r.ConnectionID, from.lane, from.lane); err != nil {
			return err
		}
		looked, found, err := r.look(ctx, tx, partOfLane, from.lane, from.seq, r.Chunk)
		if err != nil {
			return err
		}
		next, more = found.last, true
		if looked < r.Chunk {
			next, more = Place{lane: from.lane + 1}, from.lane+1 < asideBase+laneCount
		}
		return r.waiting(ctx, tx, found)
	})
	return next, more, wrapRewrite(err)
}

const selectSent = `
SELECT lane, fence
FROM delivery.lanes
WHERE connection_id = $1 AND kind = 1 AND leased_by IS NOT NULL AND leased_until > now() AND cardinality(flight) > 0`

// RewriteRest rewrites what moved since the mark, and returns who may be sending what it was before. The dead come first:
// a replay that holds one of them commits before it is rewritten, and so before the waiting are looked at.
func (s *Store) RewriteRest(ctx context.Context, r Rewrite, m Mark) (sent []Sent, err error) {
	err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		if err := holdLanes(ctx, tx, r.ConnectionID, 0, asideBase+laneCount-1); err != nil {
			return err
		}
		_, found, err := r.look(ctx, tx, newlyDead, m.at.Add(-settleMargin))
		if err != nil {
			return err
		}
		if err := r.dead(ctx, tx, found); err != nil {
			return err
		}
		if _, found, err = r.look(ctx, tx, newlyWaiting, m.seq); err != nil {
			return err
		}
		if err := r.waiting(ctx, tx, found); err != nil {
			return err
		}
		rows, err := tx.Query(ctx, selectSent, r.ConnectionID)
		if err != nil {
			return err
		}
		sent, err = pgx.CollectRows(rows, pgx.RowToStructByPos[Sent])
		return err
	})
	return sent, wrapRewrite(err)
}

const stillSent = `
SELECT EXISTS (
    SELECT FROM delivery.lanes l
    JOIN unnest($2::smallint[], $3::bigint[]) AS s (lane, fence) USING (lane, fence)
    WHERE l.connection_id = $1 AND l.kind = 1 AND l.leased_by IS NOT NULL AND l.leased_until > now())`

// Sending reports whether one of the leases is still held.
func (s *Store) Sending(ctx context.Context, c ident.ConnectionID, sent []Sent) (still bool, err error) {
	lanes, fences := make([]int16, len(sent)), make([]int64, len(sent))
	for i, l := range sent {
		lanes[i], fences[i] = l.Lane, l.Fence
	}
	if err = s.pool.QueryRow(ctx, stillSent, c, lanes, fences).Scan(&still); err != nil {
		err = fmt.Errorf("look at leases: %w", err)
	}
	return still, err
}

const (
	makeLanes = `
INSERT INTO delivery.lanes (connection_id, kind, lane, ready)
SELECT $1, 1, n, false FROM generate_series($2::integer, $3::integer) AS n
ON CONFLICT DO NOTHING`

	lockLanes = `
SELECT lane FROM delivery.lanes
WHERE connection_id = $1 AND kind = 1 AND lane BETWEEN $2 AND $3
ORDER BY lane
FOR UPDATE`
)

// holdLanes keeps workers from reading bodies that they write back, and deliveries from moving. A lane that nothing was
// delivered from yet is made, asleep, so that there is a row to hold.
func holdLanes(ctx context.Context, tx pgx.Tx, c ident.ConnectionID, first, last int16) error {
	b := &pgx.Batch{}
	b.Queue(makeLanes, c, first, last)
	b.Queue(lockLanes, c, first, last)
	return tx.SendBatch(ctx, b).Close()
}

// rewritten are rows with their new bodies; last is the last row that was looked at.
type rewritten struct {
	lanes  []int16
	seqs   []int64
	ids    []string
	bodies [][]byte
	last   Place
}

func (r Rewrite) look(ctx context.Context, tx pgx.Tx, sql string, args ...any) (looked int, found rewritten, err error) {
	rows, err := tx.Query(ctx, sql, append([]any{r.ConnectionID, r.Needles}, args...)...)
	if err != nil {
		return 0, found, err
	}
	var at Place
	var enqueued time.Time
	var body []byte
	_, err = pgx.ForEachRow(rows, []any{&at.lane, &at.seq, &at.id, &enqueued, &body}, func() error {
		looked++
		found.last = at
		if body == nil {
			return nil
		}
		if changed := r.Body(body, enqueued); changed != nil {
			found.lanes, found.seqs = append(found.lanes, at.lane), append(found.seqs, at.seq)
			found.ids, found.bodies = append(found.ids, at.id), append(found.bodies, changed)
		}
		return nil
	})
	return looked, found, err
}

func (r Rewrite) dead(ctx context.Context, tx pgx.Tx, found rewritten) error {
	if len(found.ids) == 0 {
		return nil
	}
	_, err := tx.Exec(ctx, rewriteDead, r.ConnectionID, found.ids, found.bodies)
	return err
}

func (r Rewrite) waiting(ctx context.Context, tx pgx.Tx, found rewritten) error {
	if len(found.seqs) == 0 {
		return nil
	}
	_, err := tx.Exec(ctx, rewriteWaiting, r.ConnectionID, found.lanes, found.bodies, found.seqs)
	return err
}

func wrapRewrite(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("rewrite deliveries: %w", err)
}
