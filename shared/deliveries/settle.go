package deliveries

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// lockLane finds nothing when the lease was settled already, so a settlement whose COMMIT had no answer can be repeated.
const lockLane = `
SELECT lane
FROM delivery.lanes
WHERE connection_id = $1 AND kind = $2 AND lane = $3 AND fence = $4 AND leased_by IS NOT NULL
FOR UPDATE`

const deleteDelivered = `
DELETE FROM delivery.entries
WHERE connection_id = $1 AND kind = $2 AND lane = $3 AND seq ` + near + ` AND seq = ANY ($4)`

// Settle ends a lease: what was delivered goes, what died moves to the dead, what failed waits, the rest is as it
// was. It changes nothing and returns ErrFenced when the lease is no longer the lane's.
func (s *Store) Settle(ctx context.Context, l *Lease, st Settlement) (Settled, error) {
	var done Settled
	err := s.inTurn(ctx, func(tx pgx.Tx) error {
		t := newTally(l, st)
		if err := t.begin(ctx, tx); err != nil {
			return err
		}
		if len(t.trouble) > 0 {
			if err := t.bury(ctx, tx); err != nil {
				return err
			}
			if err := t.delay(ctx, tx); err != nil {
				return err
			}
		}
		done = Settled{Delivered: len(t.delivered), Died: len(t.died), Failed: len(t.trouble) - len(t.died)}
		return t.finish(ctx, tx)
	})
	if err != nil {
		if !errors.Is(err, ErrFenced) {
			err = fmt.Errorf("settle a lane: %w", err)
		}
		return Settled{}, err
	}
	return done, nil
}

// tally is a settlement in the making.
type tally struct {
	lease     *Lease
	st        Settlement
	was       map[int64]bool // unconfirmed before this lease
	delivered []int64
	trouble   []Outcome
	died      []int64
	moved     []int64 // to the aside
	due       time.Duration
	newly     []int64 // unconfirmed by this lease
}

func newTally(l *Lease, st Settlement) *tally {
	t := &tally{lease: l, st: st, was: make(map[int64]bool), delivered: []int64{}}
	for _, e := range l.Entries {
		if e.Unconfirmed {
			t.was[e.Seq] = true
		}
	}
	for _, o := range st.Outcomes {
		if o.Fate == Delivered {
			t.delivered = append(t.delivered, o.Seq)
		} else {
			t.trouble = append(t.trouble, o)
		}
	}
	return t
}

// begin locks the lane under its fence and deletes what was delivered.
func (t *tally) begin(ctx context.Context, tx pgx.Tx) error {
	l := t.lease
	b := &pgx.Batch{}
	b.Queue(lockLane, l.ConnectionID, int16(l.Kind), l.Lane, l.Fence)
	if len(t.delivered) > 0 {
		b.Queue(deleteDelivered, l.ConnectionID, int16(l.Kind), l.Lane, t.delivered)
	}
	results := tx.SendBatch(ctx, b)
	defer func() { _ = results.Close() }()
	var number int16
	if err := results.QueryRow().Scan(&number); err != nil {
		if errors.Is(err, pgx.ErrNoRows) {
			return ErrFenced
		}
		return err
	}
	return results.Close()
}

const bury = `
WITH gone AS (
    DELETE FROM delivery.entries e
    USING unnest($4::bigint[], $5::boolean[], $6::text[]) AS o (seq, died, reason)
    WHERE e.connection_id = $1 AND e.kind = $2 AND e.lane = $3 AND e.seq ` + near + ` AND e.seq = o.seq
      AND (o.died OR (e.attempts + 1 >= $7 AND e.failed_since <= delivery.running_now() - $8::interval))
    RETURNING e.connection_id, e.kind, e.lane, e.seq, e.id, e.body, e.created_at, e.attempts,
              CASE WHEN o.died THEN o.reason ELSE 'given_up: ' || o.reason END AS reason
), kept AS (
    INSERT INTO delivery.dead AS d (connection_id, kind, id, lane, body, created_at, died_at, attempts, reason)
    SELECT connection_id, kind, id, lane % 8, body, created_at, now(), attempts + 1, left(reason, 256)
    FROM gone
    ON CONFLICT (connection_id, kind, id) DO UPDATE
    SET lane = excluded.lane, body = excluded.body, died_at = excluded.died_at, attempts = excluded.attempts, reason = excluded.reason
)
SELECT seq FROM gone`

// bury moves to the dead what died, and what failed for the last time.
func (t *tally) bury(ctx context.Context, tx pgx.Tx) error {
	l := t.lease
	var seqs []int64
	var died []bool
	var reasons []string
	for _, o := range t.trouble {
		seqs = append(seqs, o.Seq)
		died = append(died, o.Fate == Died)
		reasons = append(reasons, storable(o.Reason))
	}
	rows, err := tx.Query(ctx, bury, l.ConnectionID, int16(l.Kind), l.Lane, seqs, died, reasons, t.st.DeadAttempts, micros(t.st.DeadAfter))
	if err != nil {
		return err
	}
	t.died, err = pgx.CollectRows(rows, pgx.RowTo[int64])
	return err
}

// storable makes any text one that PostgreSQL takes.
func storable(text string) string {
	text = strings.ReplaceAll(strings.ToValidUTF8(text, "?"), "\x00", "?")
	if len(text) > 240 {
		text = strings.ToValidUTF8(text[:240], "")
	}
	return text
}

const delayFailed = `
UPDATE delivery.entries e
SET attempts = e.attempts + 1,
    failed_since = coalesce(e.failed_since, delivery.running_now()),
    lane = CASE WHEN o.aside AND e.lane < 8 THEN e.lane + 8 ELSE e.lane END,
    not_before = CASE WHEN o.aside OR e.lane >= 8 THEN now() + o.retry_in END
FROM unnest($4::bigint[], $5::boolean[], $6::interval[]) AS o (seq, aside, retry_in)
WHERE e.connection_id = $1 AND e.kind = $2 AND e.lane = $3 AND e.seq ` + near + ` AND e.seq = o.seq`

const wakeAside = `
INSERT INTO delivery.lanes AS l (connection_id, kind, lane, ready, not_before, unconfirmed)
VALUES ($1, $2, $3::smallint + 8, true, now() + $4::interval, $5)
ON CONFLICT (connection_id, kind, lane) DO UPDATE
SET ready = true, not_before = least(l.not_before, excluded.not_before), unconfirmed = l.unconfirmed || excluded.unconfirmed,
    oldest_at = '-infinity'`

// delay counts the failures that are left, and moves aside what must be retried alone.
func (t *tally) delay(ctx context.Context, tx pgx.Tx) error {
	l := t.lease
	var seqs []int64
	var aside []bool
	var retry []time.Duration
	doubtful := []int64{} // of what moves
	for _, o := range t.trouble {
		if slices.Contains(t.died, o.Seq) {
			continue
		}
		seqs, aside, retry = append(seqs, o.Seq), append(aside, o.Aside), append(retry, micros(o.RetryIn))
		if o.Unconfirmed && !t.was[o.Seq] {
			t.newly = append(t.newly, o.Seq)
		}
		if o.Aside && !l.Alone {
			t.moved = append(t.moved, o.Seq)
			if o.Unconfirmed || t.was[o.Seq] {
				doubtful = append(doubtful, o.Seq)
			}
			if t.due == 0 || o.RetryIn < t.due {
				t.due = o.RetryIn
			}
		}
	}
	b := &pgx.Batch{}
	b.Queue(delayFailed, l.ConnectionID, int16(l.Kind), l.Lane, seqs, aside, retry)
	if len(t.moved) > 0 {
		b.Queue(wakeAside, l.ConnectionID, int16(l.Kind), l.Lane, micros(t.due), doubtful)
	}
	return tx.SendBatch(ctx, b).Close()
}

// giveBack runs after the lane's row is locked, so what it does not see of the lane's entries, the compactor wakes. It looks
// from $7 on, where what is left of the lease begins, first: what was delivered lies dead before that until it is vacuumed.
const giveBack = `
UPDATE delivery.lanes AS l
SET leased_until = '-infinity', leased_by = NULL, flight = '{}',
    unconfirmed = ARRAY(SELECT DISTINCT u FROM unnest(l.unconfirmed || $4::bigint[]) AS u WHERE u <> ALL ($5) ORDER BY u),
    ready = head.created_at IS NOT NULL,
    oldest_at = coalesce(head.created_at, '-infinity'),
    not_before = greatest(now() + $6::interval, (
        SELECT min(e.not_before)
        FROM delivery.entries e
        WHERE e.connection_id = $1 AND e.kind = $2 AND e.lane = $3 AND e.lane >= 8))
FROM (
    SELECT coalesce(
        (SELECT e.created_at FROM delivery.entries e WHERE e.connection_id = $1 AND e.kind = $2 AND e.lane = $3 AND e.seq >= $7 ORDER BY e.seq LIMIT 1),
        (SELECT e.created_at FROM delivery.entries e WHERE e.connection_id = $1 AND e.kind = $2 AND e.lane = $3 ORDER BY e.seq LIMIT 1)
    ) AS created_at
) head
WHERE l.connection_id = $1 AND l.kind = $2 AND l.lane = $3`

// finish gives the lane back and writes the delta.
func (t *tally) finish(ctx context.Context, tx pgx.Tx) error {
	gone := slices.Concat(t.delivered, t.died)
	d := delta{pending: -len(gone), unconfirmed: len(t.newly), dead: len(t.died)}
	for _, seq := range gone {
		if t.was[seq] {
			d.unconfirmed--
		}
	}
	l := t.lease
	left := slices.Concat(gone, t.moved)
	b := &pgx.Batch{}
	b.Queue(giveBack, l.ConnectionID, int16(l.Kind), l.Lane, notNull(t.newly), notNull(left), micros(t.st.Rest), l.after(left))
	queueDelta(b, l, d)
	return tx.SendBatch(ctx, b).Close()
}
