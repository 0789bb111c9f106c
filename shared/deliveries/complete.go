package deliveries

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"storefront.internal/shared/pg"
)

// lockLeases does not find a lease that is already completed, so a completion whose COMMIT had no answer can
// be repeated. The lanes are given and locked in the order of their keys, as every transaction does that
// waits for several.
const lockLeases = `
SELECT o.n, l.ctid
FROM unnest($1::text[], $2::smallint[], $3::smallint[], $4::bigint[])
    WITH ORDINALITY AS o (connection_id, kind, lane, fence, n)
JOIN delivery.lanes l ON l.connection_id = o.connection_id AND l.kind = o.kind AND l.lane = o.lane
WHERE l.fence = o.fence AND l.leased_by IS NOT NULL
ORDER BY o.n
FOR UPDATE OF l`

// deleteDelivered deletes entries where the lease found them. A redaction since then may have moved some.
const deleteDelivered = `
DELETE FROM delivery.entries e
USING unnest($1::tid[], $2::bigint[]) AS o (tid, seq)
WHERE e.ctid = o.tid AND e.seq = o.seq`

const deleteMoved = `
DELETE FROM delivery.entries e
USING unnest($1::text[], $2::smallint[], $3::smallint[], $4::bigint[]) AS o (connection_id, kind, lane, seq)
WHERE e.connection_id = o.connection_id AND e.kind = o.kind AND e.lane = o.lane AND e.seq = o.seq`

// errLost ends the transaction of a completion when leases in it are lost.
var errLost = errors.New("leases were lost")

// Complete ends leases by the outcomes of their entries, in one transaction. It changes nothing of a lane
// that has another lease since.
func (s *Store) Complete(ctx context.Context, c Completion) (Completed, error) {
	lanes := make([]*laneCompletion, len(c.Lanes))
	for i := range c.Lanes {
		lanes[i] = newLaneCompletion(c.Lanes[i])
	}
	slices.SortFunc(lanes, func(a, b *laneCompletion) int {
		return cmp.Or(cmp.Compare(a.lease.ConnectionID, b.lease.ConnectionID),
			cmp.Compare(a.lease.Kind, b.lease.Kind), cmp.Compare(a.lease.Lane, b.lease.Lane))
	})
	var lost []*Lease
	for len(lanes) > 0 {
		t := &completionTx{request: c, lanes: lanes}
		err := s.withQueuePlanner(ctx, func(tx pgx.Tx) error { return t.run(ctx, tx) })
		if errors.Is(err, errLost) {
			lost = append(lost, t.lost...)
			lanes = slices.DeleteFunc(lanes, func(l *laneCompletion) bool {
				return slices.Contains(lost, l.lease)
			})
			continue
		}
		if err != nil {
			return Completed{}, fmt.Errorf("complete leases: %w", err)
		}
		done := t.counts()
		done.Lost = lost
		return done, nil
	}
	return Completed{Lost: lost}, nil
}

// laneCompletion is the completion of one lane.
type laneCompletion struct {
	lease            *Lease
	tid              pgtype.TID // of its locked row
	delay            time.Duration
	wasUnconfirmed   map[int64]bool // before this lease
	delivered        []int64
	notDelivered     []Outcome
	deadLettered     []int64
	isolated         []int64       // moved to the retry lane
	firstRetryIn     time.Duration // of the isolated
	newlyUnconfirmed []int64
}

func newLaneCompletion(c LaneCompletion) *laneCompletion {
	l := &laneCompletion{lease: c.Lease, delay: c.Delay, wasUnconfirmed: make(map[int64]bool)}
	for _, e := range c.Lease.Entries {
		if e.Unconfirmed {
			l.wasUnconfirmed[e.Seq] = true
		}
	}
	for _, o := range c.Outcomes {
		if o.Status == Delivered {
			l.delivered = append(l.delivered, o.Seq)
		} else {
			l.notDelivered = append(l.notDelivered, o)
		}
	}
	return l
}

// completionTx is the transaction of a completion.
type completionTx struct {
	request Completion
	lanes   []*laneCompletion // in the order of their keys
	lost    []*Lease
}

func (t *completionTx) run(ctx context.Context, tx pgx.Tx) error {
	if err := t.begin(ctx, tx); err != nil {
		return err
	}
	if failed := slices.DeleteFunc(slices.Clone(t.lanes), func(l *laneCompletion) bool {
		return len(l.notDelivered) == 0
	}); len(failed) > 0 {
		if err := t.deadLetter(ctx, tx, failed); err != nil {
			return err
		}
		if err := t.scheduleRetries(ctx, tx, failed); err != nil {
			return err
		}
	}
	return t.finish(ctx, tx)
}

// begin locks the lanes under the fences of the leases and deletes what was delivered.
func (t *completionTx) begin(ctx context.Context, tx pgx.Tx) error {
	var keys laneKeys
	delivered := t.delivered()
	for _, l := range t.lanes {
		keys.add(l.lease)
	}
	b := &pgx.Batch{}
	b.Queue(lockLeases, keys.connections, keys.kinds, keys.lanes,
		column(t.lanes, func(l *laneCompletion) int64 { return l.lease.Fence })).Query(t.scanLocked)
	deleted := int64(0)
	if len(delivered) > 0 {
		b.Queue(deleteDelivered, column(delivered, func(e *LeasedEntry) pgtype.TID { return e.tid }),
			column(delivered, func(e *LeasedEntry) int64 { return e.Seq }),
		).Exec(func(tag pgconn.CommandTag) error {
			deleted = tag.RowsAffected()
			return nil
		})
	}
	if err := tx.SendBatch(ctx, b).Close(); err != nil || deleted == int64(len(delivered)) {
		return err
	}
	return t.deleteMoved(ctx, tx)
}

// scanLocked reads where the rows of the locked lanes are.
func (t *completionTx) scanLocked(rows pgx.Rows) error {
	locked := make([]bool, len(t.lanes))
	var n int64
	var tid pgtype.TID
	_, err := pgx.ForEachRow(rows, []any{&n, &tid}, func() error {
		locked[n-1], t.lanes[n-1].tid = true, tid
		return nil
	})
	if err != nil {
		return err
	}
	for i, l := range t.lanes {
		if !locked[i] {
			t.lost = append(t.lost, l.lease)
		}
	}
	if len(t.lost) > 0 {
		return errLost // with what was deleted
	}
	return nil
}

// delivered returns the entries that the engine has.
func (t *completionTx) delivered() (all []*LeasedEntry) {
	for _, l := range t.lanes {
		for i := range l.lease.Entries {
			if e := &l.lease.Entries[i]; slices.Contains(l.delivered, e.Seq) {
				all = append(all, e)
			}
		}
	}
	return all
}

// deleteMoved deletes what was delivered by its keys.
func (t *completionTx) deleteMoved(ctx context.Context, tx pgx.Tx) error {
	var keys laneKeys
	var seqs []int64
	for _, l := range t.lanes {
		for _, seq := range l.delivered {
			keys.add(l.lease)
			seqs = append(seqs, seq)
		}
	}
	_, err := tx.Exec(ctx, deleteMoved, keys.connections, keys.kinds, keys.lanes, seqs)
	return err
}

const deadLetterSQL = `
WITH gone AS (
    DELETE FROM delivery.entries e
    USING unnest($1::text[], $2::smallint[], $3::smallint[], $4::bigint[], $5::boolean[], $6::text[])
        AS o (connection_id, kind, lane, seq, died, reason)
    WHERE e.connection_id = o.connection_id AND e.kind = o.kind AND e.lane = o.lane AND e.seq = o.seq
      AND (o.died OR (e.attempts + 1 >= $7 AND e.failed_since <= delivery.running_now() - $8::interval))
    RETURNING e.connection_id, e.kind, e.lane, e.seq, e.id, e.body, e.created_at, e.attempts,
              CASE WHEN o.died THEN o.reason ELSE 'given_up: ' || o.reason END AS reason
), kept AS (
    INSERT INTO delivery.dead AS d (connection_id, kind, id, lane, body, created_at, died_at, attempts,
        reason)
    SELECT connection_id, kind, id, lane % 8, body, created_at, now(), attempts + 1, left(reason, 256)
    FROM gone
    ORDER BY connection_id, kind, id
    ON CONFLICT (connection_id, kind, id) DO UPDATE
    SET lane = excluded.lane, body = excluded.body, died_at = excluded.died_at, attempts = excluded.attempts,
        reason = excluded.reason
)
SELECT connection_id, kind, lane, seq FROM gone`

// maxReason is how many characters of a reason are stored.
const maxReason = 240

// deadLetter moves to the dead letters what the engine will never accept, and what has failed for the last
// time.
func (t *completionTx) deadLetter(ctx context.Context, tx pgx.Tx, failed []*laneCompletion) error {
	var keys laneKeys
	var outcomes []Outcome
	for _, l := range failed {
		for _, o := range l.notDelivered {
			keys.add(l.lease)
			outcomes = append(outcomes, o)
		}
	}
	rows, err := tx.Query(ctx, deadLetterSQL, keys.connections, keys.kinds, keys.lanes,
		column(outcomes, func(o Outcome) int64 { return o.Seq }),
		column(outcomes, func(o Outcome) bool { return o.Status == DeadLettered }),
		column(outcomes, func(o Outcome) string { return pg.SafeText(o.Reason, maxReason) }),
		t.request.DeadAttempts, micros(t.request.DeadAfter))
	if err != nil {
		return err
	}
	var connection string
	var kind, number int16
	var seq int64
	_, err = pgx.ForEachRow(rows, []any{&connection, &kind, &number, &seq}, func() error {
		l := failed[indexOf(failed, connection, kind, number)]
		l.deadLettered = append(l.deadLettered, seq)
		return nil
	})
	return err
}

const scheduleRetriesSQL = `
UPDATE delivery.entries e
SET attempts = e.attempts + 1,
    failed_since = coalesce(e.failed_since, delivery.running_now()),
    lane = CASE WHEN o.isolate AND e.lane < 8 THEN e.lane + 8 ELSE e.lane END,
    not_before = CASE WHEN o.isolate OR e.lane >= 8 THEN now() + o.retry_in END
FROM unnest($1::text[], $2::smallint[], $3::smallint[], $4::bigint[], $5::boolean[], $6::interval[])
    AS o (connection_id, kind, lane, seq, isolate, retry_in)
WHERE e.connection_id = o.connection_id AND e.kind = o.kind AND e.lane = o.lane AND e.seq = o.seq`

// wakeRetryLanes comes after the locks of the lanes: only the holder of lane n waits for lane n + 8, and the
// holder of a retry lane waits for no lane of another connection. So there is no deadlock.
const wakeRetryLanes = `
INSERT INTO delivery.lanes AS l (connection_id, kind, lane, ready, not_before, unconfirmed)
SELECT o.connection_id, o.kind, o.lane + 8, true, now() + o.retry_in, o.unconfirmed::bigint[]
FROM unnest($1::text[], $2::smallint[], $3::smallint[], $4::interval[], $5::text[])
    AS o (connection_id, kind, lane, retry_in, unconfirmed)
ORDER BY o.connection_id, o.kind, o.lane
ON CONFLICT (connection_id, kind, lane) DO UPDATE
SET ready = true, not_before = least(l.not_before, excluded.not_before),
    unconfirmed = l.unconfirmed || excluded.unconfirmed, oldest_at = '-infinity'
RETURNING l.connection_id, l.kind, l.lane, l.ctid`

// scheduleRetries counts the failures of what is not dead-lettered, and moves to the retry lanes what the
// worker isolates.
func (t *completionTx) scheduleRetries(ctx context.Context, tx pgx.Tx, failed []*laneCompletion) error {
	var keys, woken laneKeys
	var retries []Outcome
	var retryIn []time.Duration
	var unconfirmed []string
	for _, l := range failed {
		for _, o := range l.retries() {
			keys.add(l.lease)
			retries = append(retries, o)
		}
		if len(l.isolated) > 0 {
			woken.add(l.lease)
			retryIn = append(retryIn, micros(l.firstRetryIn))
			unconfirmed = append(unconfirmed, arrayOf(l.isolatedUnconfirmed()))
		}
	}
	if len(retries) == 0 {
		return nil
	}
	b := &pgx.Batch{}
	b.Queue(scheduleRetriesSQL, keys.connections, keys.kinds, keys.lanes,
		column(retries, func(o Outcome) int64 { return o.Seq }),
		column(retries, func(o Outcome) bool { return o.Isolate }),
		column(retries, func(o Outcome) time.Duration { return micros(o.RetryIn) }))
	if len(retryIn) > 0 {
		b.Queue(wakeRetryLanes, woken.connections, woken.kinds, woken.lanes, retryIn, unconfirmed).
			Query(t.scanWoken)
	}
	return tx.SendBatch(ctx, b).Close()
}

// scanWoken reads where the rows of the woken lanes are now: this transaction may complete one of them too.
func (t *completionTx) scanWoken(rows pgx.Rows) error {
	var connection string
	var kind, number int16
	var tid pgtype.TID
	_, err := pgx.ForEachRow(rows, []any{&connection, &kind, &number, &tid}, func() error {
		if i := indexOf(t.lanes, connection, kind, number); i >= 0 {
			t.lanes[i].tid = tid
		}
		return nil
	})
	return err
}

// indexOf finds the completion of a lane; -1 when there is none.
func indexOf(lanes []*laneCompletion, connection string, kind, number int16) int {
	return slices.IndexFunc(lanes, func(l *laneCompletion) bool {
		return string(l.lease.ConnectionID) == connection && int16(l.lease.Kind) == kind &&
			l.lease.Lane == number
	})
}

// retries returns the outcomes of what is not dead-lettered, and notes what becomes unconfirmed and what
// moves to the retry lane.
func (l *laneCompletion) retries() (retries []Outcome) {
	for _, o := range l.notDelivered {
		if slices.Contains(l.deadLettered, o.Seq) {
			continue
		}
		retries = append(retries, o)
		if o.Unconfirmed && !l.wasUnconfirmed[o.Seq] {
			l.newlyUnconfirmed = append(l.newlyUnconfirmed, o.Seq)
		}
		if o.Isolate && !l.lease.Isolated {
			l.isolated = append(l.isolated, o.Seq)
			if l.firstRetryIn == 0 || o.RetryIn < l.firstRetryIn {
				l.firstRetryIn = o.RetryIn
			}
		}
	}
	return retries
}

func (l *laneCompletion) isolatedUnconfirmed() (seqs []int64) {
	for _, seq := range l.isolated {
		if l.wasUnconfirmed[seq] || slices.Contains(l.newlyUnconfirmed, seq) {
			seqs = append(seqs, seq)
		}
	}
	return seqs
}

// releaseLanes runs after the lanes are locked, so Compact will wake a lane for entries that it does not see.
// It looks for the first entry from resume on before it looks from the start: rows that were deleted before
// that remain in the index until they are vacuumed.
const releaseLanes = `
UPDATE delivery.lanes AS l
SET leased_until = '-infinity', leased_by = NULL, flight = '{}',
    unconfirmed = CASE WHEN l.unconfirmed = '{}' AND o.unconfirmed = '{}' THEN '{}' ELSE ARRAY(
        SELECT DISTINCT u FROM unnest(l.unconfirmed || o.unconfirmed::bigint[]) AS u
        WHERE u <> ALL (o.gone::bigint[]) ORDER BY u) END,
    ready = o.created_at IS NOT NULL,
    oldest_at = coalesce(o.created_at, '-infinity'),
    not_before = greatest(now() + o.delay, o.due)
FROM (
    SELECT o.*, coalesce(
        CASE WHEN o.resume > 0 THEN
            (SELECT e.created_at FROM delivery.entries e
             WHERE e.connection_id = o.connection_id AND e.kind = o.kind AND e.lane = o.lane
               AND e.seq >= o.resume
             ORDER BY e.seq LIMIT 1) END,
        (SELECT e.created_at FROM delivery.entries e
         WHERE e.connection_id = o.connection_id AND e.kind = o.kind AND e.lane = o.lane
         ORDER BY e.seq LIMIT 1)
    ) AS created_at, CASE WHEN o.lane >= 8 THEN
        (SELECT min(e.not_before) FROM delivery.entries e
         WHERE e.connection_id = o.connection_id AND e.kind = o.kind AND e.lane = o.lane AND e.lane >= 8)
    END AS due
    FROM unnest($1::text[], $2::smallint[], $3::smallint[], $4::interval[], $5::bigint[], $6::text[],
            $7::text[], $8::tid[])
        AS o (connection_id, kind, lane, delay, resume, unconfirmed, gone, tid)
    OFFSET 0
) o
WHERE l.ctid = o.tid`

// finish releases the lanes and appends the deltas.
func (t *completionTx) finish(ctx context.Context, tx pgx.Tx) error {
	d := deltas{}
	var keys laneKeys
	var resume []int64
	var gone []string
	for _, l := range t.lanes {
		d.add(l.lease, l.delta())
		left := slices.Concat(l.delivered, l.deadLettered, l.isolated)
		keys.add(l.lease)
		resume, gone = append(resume, l.lease.resumeSeq(left)), append(gone, arrayOf(left))
	}
	b := &pgx.Batch{}
	b.Queue(releaseLanes, keys.connections, keys.kinds, keys.lanes,
		column(t.lanes, func(l *laneCompletion) time.Duration { return micros(l.delay) }), resume,
		column(t.lanes, func(l *laneCompletion) string { return arrayOf(l.newlyUnconfirmed) }), gone,
		column(t.lanes, func(l *laneCompletion) pgtype.TID { return l.tid }),
	).Exec(func(tag pgconn.CommandTag) error { return expectRows(tag, len(t.lanes)) })
	d.queue(b)
	return tx.SendBatch(ctx, b).Close()
}

func (l *laneCompletion) delta() delta {
	gone := slices.Concat(l.delivered, l.deadLettered)
	d := delta{pending: -len(gone), unconfirmed: len(l.newlyUnconfirmed), dead: len(l.deadLettered)}
	for _, seq := range gone {
		if l.wasUnconfirmed[seq] {
			d.unconfirmed--
		}
	}
	return d
}

func (t *completionTx) counts() (done Completed) {
	for _, l := range t.lanes {
		done.Delivered += len(l.delivered)
		done.DeadLettered += len(l.deadLettered)
		done.Failed += len(l.notDelivered) - len(l.deadLettered)
	}
	return done
}
