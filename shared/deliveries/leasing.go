package deliveries

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

// selectNextLane locks the next lane that is due. Of the connections whose lanes have waited longest it takes
// the one that was served longest ago in any of its lanes: eight busy lanes of one tenant get no more turns
// than one lane of another.
const selectNextLane = `
WITH waiting AS MATERIALIZED (
    SELECT connection_id, kind, lane, served_at
    FROM delivery.lanes
    WHERE ready AND kind = ANY ($1) AND lane <= $2 AND not_before <= now() AND leased_until <= now()
    ORDER BY served_at
    LIMIT 64
), turns AS MATERIALIZED (
    SELECT w.connection_id, latest.served_at
    FROM (SELECT DISTINCT connection_id FROM waiting) w
    CROSS JOIN LATERAL (
        SELECT max(l.served_at) AS served_at FROM delivery.lanes l WHERE l.connection_id = w.connection_id
    ) latest
)
SELECT l.connection_id, l.kind, l.lane, l.fence, l.flight, l.unconfirmed, now()
FROM waiting w
JOIN turns t USING (connection_id)
JOIN delivery.lanes l USING (connection_id, kind, lane)
WHERE l.ready AND l.not_before <= now() AND l.leased_until <= now()
ORDER BY t.served_at, w.served_at
LIMIT 1
FOR UPDATE OF l SKIP LOCKED`

const (
	// maxSkippedLanes is how many lanes without anything to send one call of Lease skips.
	maxSkippedLanes = 16
	// awaitDelay is how long a lane waits in which every entry still awaits its Decision.
	awaitDelay = 200 * time.Millisecond
	// isolatedLimit bounds the entries in the lease of a retry lane.
	isolatedLimit = 16
)

// lane is the locked row of a lane.
type lane struct {
	Lease
	inFlight    []int64
	unconfirmed []int64
}

// Lease leases the next lane that has something to send. The bodies are frozen and the entries recorded as in
// flight. It returns nil when nothing is due, and ErrBlocked when the credential is refused.
func (s *Store) Lease(ctx context.Context, q LeaseQuery) (*Lease, error) {
	for range maxSkippedLanes {
		lease, skipped, err := s.leaseOne(ctx, q)
		if err != nil && !errors.Is(err, ErrBlocked) {
			err = fmt.Errorf("lease a lane: %w", err)
		}
		if err != nil || lease != nil || !skipped {
			return lease, err
		}
	}
	return nil, nil
}

func (s *Store) leaseOne(ctx context.Context, q LeaseQuery) (lease *Lease, skipped bool, err error) {
	err = s.withQueuePlanner(ctx, func(tx pgx.Tx) error {
		probe, l, err := lockNextLane(ctx, tx, q)
		if err != nil || l == nil {
			return err
		}
		expired := l.recoverInFlight()
		selected, err := selectEntries(ctx, tx, q, l)
		if err != nil {
			return err
		}
		if len(selected) == 0 {
			skipped = true
			return skipLane(ctx, tx, l, expired)
		}
		if probe {
			if err := claimProbe(ctx, tx, q); err != nil {
				return err
			}
		}
		l.Probe = probe
		lease = &l.Lease
		return writeLease(ctx, tx, q, l, selected, expired)
	})
	if err != nil {
		return nil, false, err
	}
	return lease, skipped, nil
}

// lockNextLane reads the state of the credential and locks the next lane; the lane is nil when none is due.
func lockNextLane(ctx context.Context, tx pgx.Tx, q LeaseQuery) (probe bool, l *lane, err error) {
	top := int16(topLane)
	if q.SkipRetryLanes {
		top = retryLaneBase - 1
	}
	kinds := make([]int16, len(q.Kinds))
	for i, k := range q.Kinds {
		kinds[i] = int16(k)
	}
	b := &pgx.Batch{}
	b.Queue(selectBlock, q.Credential[:])
	b.Queue(selectNextLane, kinds, top)
	results := tx.SendBatch(ctx, b)
	defer func() { _ = results.Close() }()
	probe, err = scanBlock(results.QueryRow())
	if err != nil {
		return false, nil, err
	}
	l = &lane{}
	err = results.QueryRow().Scan(
		&l.ConnectionID, &l.Kind, &l.Lane, &l.Fence, &l.inFlight, &l.unconfirmed, &l.LeasedAt)
	if errors.Is(err, pgx.ErrNoRows) {
		return false, nil, results.Close()
	}
	if err != nil {
		return false, nil, err
	}
	l.Isolated = l.Lane >= retryLaneBase
	return probe, l, results.Close()
}

// recoverInFlight makes the entries of an expired lease unconfirmed and returns how many were not so before.
func (l *lane) recoverInFlight() int {
	n := 0
	for _, seq := range l.inFlight {
		if !slices.Contains(l.unconfirmed, seq) {
			l.unconfirmed = append(l.unconfirmed, seq)
			n++
		}
	}
	l.inFlight = nil
	return n
}

const skipLaneSQL = `
UPDATE delivery.lanes AS l
SET fence = l.fence + 1, flight = '{}', unconfirmed = $4, served_at = now(), leased_until = '-infinity',
    leased_by = NULL, ready = head.created_at IS NOT NULL,
    oldest_at = coalesce(head.created_at, '-infinity'),
    not_before = CASE WHEN l.lane < 8 AND head.created_at IS NOT NULL THEN now() + $5::interval
        ELSE coalesce(head.due, '-infinity') END
FROM (
    SELECT (
        SELECT created_at FROM delivery.entries
        WHERE connection_id = $1 AND kind = $2 AND lane = $3 ORDER BY seq LIMIT 1
    ) AS created_at, (
        SELECT min(not_before) FROM delivery.entries
        WHERE connection_id = $1 AND kind = $2 AND lane = $3 AND lane >= 8
    ) AS due
) head
WHERE l.connection_id = $1 AND l.kind = $2 AND l.lane = $3`

// skipLane releases a locked lane that has nothing to send now. An empty lane goes to sleep.
func skipLane(ctx context.Context, tx pgx.Tx, l *lane, expired int) error {
	b := &pgx.Batch{}
	b.Queue(skipLaneSQL, l.ConnectionID, int16(l.Kind), l.Lane, notNull(l.unconfirmed), awaitDelay)
	queueDelta(b, &l.Lease, delta{unconfirmed: expired})
	return tx.SendBatch(ctx, b).Close()
}

const leaseLane = `
UPDATE delivery.lanes
SET fence = $4, leased_until = now() + $5::interval, leased_by = $6, served_at = now(), flight = $7,
    unconfirmed = $8
WHERE connection_id = $1 AND kind = $2 AND lane = $3`

const freezeBodies = `
UPDATE delivery.entries AS e
SET body = f.body, awaits = NULL, awaits_minted = NULL
FROM unnest($4::bigint[], $5::bytea[]) AS f (seq, body)
WHERE e.connection_id = $1 AND e.kind = $2 AND e.lane = $3 AND e.seq ` + seqRange + ` AND e.seq = f.seq`

// writeLease stores the fence, the entries in flight and the frozen bodies.
func writeLease(
	ctx context.Context, tx pgx.Tx, q LeaseQuery, l *lane, selected []candidate, expired int,
) error {
	l.Fence++
	l.contiguous = selected[len(selected)-1].position == int64(len(selected))
	var frozen []int64
	var bodies [][]byte
	for _, c := range selected {
		if c.freeze {
			frozen, bodies = append(frozen, c.Seq), append(bodies, c.Body)
		}
		c.Unconfirmed = slices.Contains(l.unconfirmed, c.Seq)
		l.inFlight = append(l.inFlight, c.Seq)
		l.Entries = append(l.Entries, c.LeasedEntry)
	}
	b := &pgx.Batch{}
	b.Queue(leaseLane, l.ConnectionID, int16(l.Kind), l.Lane,
		l.Fence, q.TTL, q.RelayID, l.inFlight, notNull(l.unconfirmed))
	if len(frozen) > 0 {
		b.Queue(freezeBodies, l.ConnectionID, int16(l.Kind), l.Lane, frozen, bodies)
	}
	queueDelta(b, &l.Lease, delta{unconfirmed: expired})
	return tx.SendBatch(ctx, b).Close()
}

// notNull makes nil an empty array.
func notNull(seqs []int64) []int64 { return append([]int64{}, seqs...) }
