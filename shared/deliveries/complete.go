package deliveries

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"storefront.internal/shared/pg"
)

// lockLease finds nothing when the lease is already completed, so a completion whose COMMIT had no answer can
// be repeated.
const lockLease = `
SELECT lane
FROM delivery.lanes
WHERE connection_id = $1 AND kind = $2 AND lane = $3 AND fence = $4 AND leased_by IS NOT NULL
FOR UPDATE`

const deleteDelivered = `
DELETE FROM delivery.entries
WHERE connection_id = $1 AND kind = $2 AND lane = $3 AND seq ` + seqRange + ` AND seq = ANY ($4)`

// Complete ends a lease by the outcomes of its entries. It changes nothing and returns ErrLeaseLost when the
// lane has another lease since.
func (s *Store) Complete(ctx context.Context, l *Lease, c Completion) (Completed, error) {
	var done Completed
	err := s.withQueuePlanner(ctx, func(tx pgx.Tx) error {
		t := newCompletionTx(l, c)
		if err := t.begin(ctx, tx); err != nil {
			return err
		}
		if len(t.notDelivered) > 0 {
			if err := t.deadLetter(ctx, tx); err != nil {
				return err
			}
			if err := t.scheduleRetries(ctx, tx); err != nil {
				return err
			}
		}
		dead := len(t.deadLettered)
		done = Completed{Delivered: len(t.delivered), DeadLettered: dead, Failed: len(t.notDelivered) - dead}
		return t.finish(ctx, tx)
	})
	if err != nil {
		if !errors.Is(err, ErrLeaseLost) {
			err = fmt.Errorf("complete a lease: %w", err)
		}
		return Completed{}, err
	}
	return done, nil
}

// completionTx is the transaction of a completion.
type completionTx struct {
	lease            *Lease
	request          Completion
	wasUnconfirmed   map[int64]bool // before this lease
	delivered        []int64
	notDelivered     []Outcome
	deadLettered     []int64
	isolated         []int64       // moved to the retry lane
	firstRetryIn     time.Duration // of the isolated
	newlyUnconfirmed []int64
}

func newCompletionTx(l *Lease, c Completion) *completionTx {
	t := &completionTx{lease: l, request: c, wasUnconfirmed: make(map[int64]bool), delivered: []int64{}}
	for _, e := range l.Entries {
		if e.Unconfirmed {
			t.wasUnconfirmed[e.Seq] = true
		}
	}
	for _, o := range c.Outcomes {
		if o.Status == Delivered {
			t.delivered = append(t.delivered, o.Seq)
		} else {
			t.notDelivered = append(t.notDelivered, o)
		}
	}
	return t
}

// begin locks the lane under the lease's fence and deletes what was delivered.
func (t *completionTx) begin(ctx context.Context, tx pgx.Tx) error {
	l := t.lease
	b := &pgx.Batch{}
	b.Queue(lockLease, l.ConnectionID, int16(l.Kind), l.Lane, l.Fence)
	if len(t.delivered) > 0 {
		b.Queue(deleteDelivered, l.ConnectionID, int16(l.Kind), l.Lane, t.delivered)
	}
	results := tx.SendBatch(ctx, b)
	defer func() { _ = results.Close() }()
	var number int16
	if err := results.QueryRow().Scan(&number); err != nil {
		if errors.Is(err, pgx.ErrNoRows) {
			return ErrLeaseLost
		}
		return err
	}
	return results.Close()
}

const deadLetterSQL = `
WITH gone AS (
    DELETE FROM delivery.entries e
    USING unnest($4::bigint[], $5::boolean[], $6::text[]) AS o (seq, died, reason)
    WHERE e.connection_id = $1 AND e.kind = $2 AND e.lane = $3 AND e.seq ` + seqRange + ` AND e.seq = o.seq
      AND (o.died OR (e.attempts + 1 >= $7 AND e.failed_since <= delivery.running_now() - $8::interval))
    RETURNING e.connection_id, e.kind, e.lane, e.seq, e.id, e.body, e.created_at, e.attempts,
              CASE WHEN o.died THEN o.reason ELSE 'given_up: ' || o.reason END AS reason
), kept AS (
    INSERT INTO delivery.dead AS d (connection_id, kind, id, lane, body, created_at, died_at, attempts,
        reason)
    SELECT connection_id, kind, id, lane % 8, body, created_at, now(), attempts + 1, left(reason, 256)
    FROM gone
    ON CONFLICT (connection_id, kind, id) DO UPDATE
    SET lane = excluded.lane, body = excluded.body, died_at = excluded.died_at, attempts = excluded.attempts,
        reason = excluded.reason
)
SELECT seq FROM gone`

// maxReason is how many characters of a reason are stored.
const maxReason = 240

// deadLetter moves to the dead letters what the engine will never accept, and what has failed for the last
// time.
func (t *completionTx) deadLetter(ctx context.Context, tx pgx.Tx) error {
	l, n := t.lease, len(t.notDelivered)
	rows, err := tx.Query(ctx, deadLetterSQL, l.ConnectionID, int16(l.Kind), l.Lane,
		pg.Column(n, func(i int) int64 { return t.notDelivered[i].Seq }),
		pg.Column(n, func(i int) bool { return t.notDelivered[i].Status == DeadLettered }),
		pg.Column(n, func(i int) string { return pg.SafeText(t.notDelivered[i].Reason, maxReason) }),
		t.request.DeadAttempts, micros(t.request.DeadAfter))
	if err != nil {
		return err
	}
	t.deadLettered, err = pgx.CollectRows(rows, pgx.RowTo[int64])
	return err
}

const scheduleRetriesSQL = `
UPDATE delivery.entries e
SET attempts = e.attempts + 1,
    failed_since = coalesce(e.failed_since, delivery.running_now()),
    lane = CASE WHEN o.isolate AND e.lane < 8 THEN e.lane + 8 ELSE e.lane END,
    not_before = CASE WHEN o.isolate OR e.lane >= 8 THEN now() + o.retry_in END
FROM unnest($4::bigint[], $5::boolean[], $6::interval[]) AS o (seq, isolate, retry_in)
WHERE e.connection_id = $1 AND e.kind = $2 AND e.lane = $3 AND e.seq ` + seqRange + ` AND e.seq = o.seq`

const wakeRetryLane = `
INSERT INTO delivery.lanes AS l (connection_id, kind, lane, ready, not_before, unconfirmed)
VALUES ($1, $2, $3::smallint + 8, true, now() + $4::interval, $5)
ON CONFLICT (connection_id, kind, lane) DO UPDATE
SET ready = true, not_before = least(l.not_before, excluded.not_before),
    unconfirmed = l.unconfirmed || excluded.unconfirmed, oldest_at = '-infinity'`

// scheduleRetries counts the failures of what is not dead-lettered, and moves to the retry lane what the
// worker isolates.
func (t *completionTx) scheduleRetries(ctx context.Context, tx pgx.Tx) error {
	l := t.lease
	var seqs []int64
	var isolate []bool
	var retryIn []time.Duration
	unconfirmed := []int64{} // of the isolated
	for _, o := range t.notDelivered {
		if slices.Contains(t.deadLettered, o.Seq) {
			continue
		}
		seqs, isolate = append(seqs, o.Seq), append(isolate, o.Isolate)
		retryIn = append(retryIn, micros(o.RetryIn))
		if o.Unconfirmed && !t.wasUnconfirmed[o.Seq] {
			t.newlyUnconfirmed = append(t.newlyUnconfirmed, o.Seq)
		}
		if o.Isolate && !l.Isolated {
			t.isolated = append(t.isolated, o.Seq)
			if o.Unconfirmed || t.wasUnconfirmed[o.Seq] {
				unconfirmed = append(unconfirmed, o.Seq)
			}
			if t.firstRetryIn == 0 || o.RetryIn < t.firstRetryIn {
				t.firstRetryIn = o.RetryIn
			}
		}
	}
	b := &pgx.Batch{}
	b.Queue(scheduleRetriesSQL, l.ConnectionID, int16(l.Kind), l.Lane, seqs, isolate, retryIn)
	if len(t.isolated) > 0 {
		b.Queue(wakeRetryLane, l.ConnectionID, int16(l.Kind), l.Lane, micros(t.firstRetryIn), unconfirmed)
	}
	return tx.SendBatch(ctx, b).Close()
}

// releaseLane runs after the lane is locked, so Compact will wake the lane for entries that it does not see.
// It looks for the first entry from $7 on before it looks from the start: rows that were deleted before $7
// remain in the index until they are vacuumed.
const releaseLane = `
UPDATE delivery.lanes AS l
SET leased_until = '-infinity', leased_by = NULL, flight = '{}',
    unconfirmed = ARRAY(
        SELECT DISTINCT u FROM unnest(l.unconfirmed || $4::bigint[]) AS u WHERE u <> ALL ($5) ORDER BY u),
    ready = head.created_at IS NOT NULL,
    oldest_at = coalesce(head.created_at, '-infinity'),
    not_before = greatest(now() + $6::interval, (
        SELECT min(e.not_before)
        FROM delivery.entries e
        WHERE e.connection_id = $1 AND e.kind = $2 AND e.lane = $3 AND e.lane >= 8))
FROM (
    SELECT coalesce(
        (SELECT e.created_at FROM delivery.entries e
         WHERE e.connection_id = $1 AND e.kind = $2 AND e.lane = $3 AND e.seq >= $7 ORDER BY e.seq LIMIT 1),
        (SELECT e.created_at FROM delivery.entries e
         WHERE e.connection_id = $1 AND e.kind = $2 AND e.lane = $3 ORDER BY e.seq LIMIT 1)
    ) AS created_at
) head
WHERE l.connection_id = $1 AND l.kind = $2 AND l.lane = $3`

// finish releases the lane and appends the delta.
func (t *completionTx) finish(ctx context.Context, tx pgx.Tx) error {
	gone := slices.Concat(t.delivered, t.deadLettered)
	d := delta{pending: -len(gone), unconfirmed: len(t.newlyUnconfirmed), dead: len(t.deadLettered)}
	for _, seq := range gone {
		if t.wasUnconfirmed[seq] {
			d.unconfirmed--
		}
	}
	l := t.lease
	left := slices.Concat(gone, t.isolated)
	b := &pgx.Batch{}
	b.Queue(releaseLane, l.ConnectionID, int16(l.Kind), l.Lane,
		notNull(t.newlyUnconfirmed), notNull(left), micros(t.request.LaneDelay), l.resumeSeq(left))
	queueDelta(b, l, d)
	return tx.SendBatch(ctx, b).Close()
}
