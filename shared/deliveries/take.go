package deliveries

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

// pickLane takes the next lane: of the connections whose lanes have waited longest, the one that was served longest
// ago with any of its lanes, so that eight busy lanes of one tenant get no more turns than one lane of another.
const pickLane = `
WITH waiting AS MATERIALIZED (
    SELECT connection_id, kind, lane, served_at
    FROM delivery.lanes
    WHERE ready AND kind = ANY ($1) AND lane <= $2 AND not_before <= now() AND leased_until <= now()
    ORDER BY served_at
    LIMIT 64
), turns AS MATERIALIZED (
    SELECT w.connection_id, latest.served_at
    FROM (SELECT DISTINCT connection_id FROM waiting) w
    CROSS JOIN LATERAL (SELECT max(l.served_at) AS served_at FROM delivery.lanes l WHERE l.connection_id = w.connection_id) latest
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
	// emptyTurns is how many lanes without anything to send one Take looks into.
	emptyTurns = 16
	// awaitPause is how long a lane rests in which every delivery still awaits its Decision.
	awaitPause = 200 * time.Millisecond
	// aloneLimit is how many deliveries that go alone one lease holds.
	aloneLimit = 16
)

// lane is a lane's row, locked.
type lane struct {
	Lease
	flight      []int64
	unconfirmed []int64
}

// Take leases the next lane that has something to send, with the bodies frozen and written down as being sent. It
// returns nil when nothing is due, and ErrBlocked when the credential is refused.
func (s *Store) Take(ctx context.Context, q TakeQuery) (*Lease, error) {
	for range emptyTurns {
		lease, again, err := s.takeOne(ctx, q)
		if err != nil && !errors.Is(err, ErrBlocked) {
			err = fmt.Errorf("take a lane: %w", err)
		}
		if err != nil || lease != nil || !again {
			return lease, err
		}
	}
	return nil, nil
}

func (s *Store) takeOne(ctx context.Context, q TakeQuery) (lease *Lease, again bool, err error) {
	err = s.inTurn(ctx, func(tx pgx.Tx) error {
		probe, l, err := pick(ctx, tx, q)
		if err != nil || l == nil {
			return err
		}
		sent := l.recover()
		chosen, err := choose(ctx, tx, q, l)
		if err != nil {
			return err
		}
		if len(chosen) == 0 {
			again = true
			return rest(ctx, tx, l, sent)
		}
		if probe {
			if err := claimProbe(ctx, tx, q); err != nil {
				return err
			}
		}
		l.Probe = probe
		lease = &l.Lease
		return grant(ctx, tx, q, l, chosen, sent)
	})
	if err != nil {
		return nil, false, err
	}
	return lease, again, nil
}

// pick reads the credential's block and locks the next lane. A nil lane means that none is due.
func pick(ctx context.Context, tx pgx.Tx, q TakeQuery) (probe bool, l *lane, err error) {
	top := int16(asideBase + laneCount - 1)
	if q.InOrderOnly {
		top = asideBase - 1
	}
	kinds := make([]int16, len(q.Kinds))
	for i, k := range q.Kinds {
		kinds[i] = int16(k)
	}
	b := &pgx.Batch{}
	b.Queue(selectBlock, q.Credential[:])
	b.Queue(pickLane, kinds, top)
	results := tx.SendBatch(ctx, b)
	defer func() { _ = results.Close() }()
	probe, err = scanBlock(results.QueryRow())
	if err != nil {
		return false, nil, err
	}
	l = &lane{}
	err = results.QueryRow().Scan(&l.ConnectionID, &l.Kind, &l.Lane, &l.Fence, &l.flight, &l.unconfirmed, &l.TakenAt)
	if errors.Is(err, pgx.ErrNoRows) {
		return false, nil, results.Close()
	}
	if err != nil {
		return false, nil, err
	}
	l.Alone = l.Lane >= asideBase
	return probe, l, results.Close()
}

// recover turns the flight of an expired lease into unconfirmed deliveries and returns how many became so now.
func (l *lane) recover() int {
	n := 0
	for _, seq := range l.flight {
		if !slices.Contains(l.unconfirmed, seq) {
			l.unconfirmed = append(l.unconfirmed, seq)
			n++
		}
	}
	l.flight = nil
	return n
}

const restLane = `
UPDATE delivery.lanes AS l
SET fence = l.fence + 1, flight = '{}', unconfirmed = $4, served_at = now(), leased_until = '-infinity', leased_by = NULL,
    ready = head.created_at IS NOT NULL,
    oldest_at = coalesce(head.created_at, '-infinity'),
    not_before = CASE WHEN l.lane < 8 AND head.created_at IS NOT NULL THEN now() + $5::interval ELSE coalesce(head.due, '-infinity') END
FROM (
    SELECT (SELECT created_at FROM delivery.entries WHERE connection_id = $1 AND kind = $2 AND lane = $3 ORDER BY seq LIMIT 1) AS created_at,
           (SELECT min(not_before) FROM delivery.entries WHERE connection_id = $1 AND kind = $2 AND lane = $3 AND lane >= 8) AS due
) head
WHERE l.connection_id = $1 AND l.kind = $2 AND l.lane = $3`

// rest gives back a locked lane that has nothing to send now: it sleeps when it is empty.
func rest(ctx context.Context, tx pgx.Tx, l *lane, sent int) error {
	b := &pgx.Batch{}
	b.Queue(restLane, l.ConnectionID, int16(l.Kind), l.Lane, notNull(l.unconfirmed), awaitPause)
	queueDelta(b, &l.Lease, delta{unconfirmed: sent})
	return tx.SendBatch(ctx, b).Close()
}

const leaseLane = `
UPDATE delivery.lanes
SET fence = $4, leased_until = now() + $5::interval, leased_by = $6, served_at = now(), flight = $7, unconfirmed = $8
WHERE connection_id = $1 AND kind = $2 AND lane = $3`

const freezeBodies = `
UPDATE delivery.entries AS e
SET body = f.body, awaits = NULL, awaits_minted = NULL
FROM unnest($4::bigint[], $5::bytea[]) AS f (seq, body)
WHERE e.connection_id = $1 AND e.kind = $2 AND e.lane = $3 AND e.seq ` + near + ` AND e.seq = f.seq`

// grant writes the lease down: the fence, the flight and the frozen bodies.
func grant(ctx context.Context, tx pgx.Tx, q TakeQuery, l *lane, chosen []candidate, sent int) error {
	l.Fence++
	l.whole = chosen[len(chosen)-1].place == int64(len(chosen))
	var frozen []int64
	var bodies [][]byte
	for _, c := range chosen {
		if c.awaited {
			frozen, bodies = append(frozen, c.Seq), append(bodies, c.Body)
		}
		c.Unconfirmed = slices.Contains(l.unconfirmed, c.Seq)
		l.flight = append(l.flight, c.Seq)
		l.Entries = append(l.Entries, c.Leased)
	}
	b := &pgx.Batch{}
	b.Queue(leaseLane, l.ConnectionID, int16(l.Kind), l.Lane, l.Fence, q.Lease, q.RelayID, l.flight, notNull(l.unconfirmed))
	if len(frozen) > 0 {
		b.Queue(freezeBodies, l.ConnectionID, int16(l.Kind), l.Lane, frozen, bodies)
	}
	queueDelta(b, &l.Lease, delta{unconfirmed: sent})
	return tx.SendBatch(ctx, b).Close()
}

// notNull keeps an empty list an empty array.
func notNull(seqs []int64) []int64 {
	if seqs == nil {
		return []int64{}
	}
	return seqs
}
