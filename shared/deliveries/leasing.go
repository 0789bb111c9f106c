package deliveries

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
)

const (
	// maxSkips is how often one call of Lease may find only lanes without anything to send.
	maxSkips = 16
	// minMoreLanes is how many more lanes are locked at least while a request is not full. Others skip the
	// lanes that are locked and not needed, so there should be few of them.
	minMoreLanes = 8
)

// leaseTx is the transaction of a lease.
type leaseTx struct {
	query   LeaseQuery
	probe   bool
	room    int // entries that still fit
	bytes   int // of their bodies; 0 without a bound
	leased  []*lane
	skipped []*lane // locked, with nothing to send now
	chosen  func()  // lets the next Lease choose its lanes
}

// Lease leases the next lanes that have something to send, all of one kind. The bodies are frozen and the
// entries recorded as in flight. It returns none when nothing is due, and ErrBlocked when the credential is
// refused.
//
// A lane is leased alone if it is a retry lane, or if one of its entries was sent before: such an entry may
// be the reason why a request failed, and those of other lanes must not fail with it again.
func (s *Store) Lease(ctx context.Context, q LeaseQuery) ([]*Lease, error) {
	for range maxSkips {
		chosen, err := s.choosing(ctx)
		if err != nil {
			return nil, fmt.Errorf("lease lanes: %w", err)
		}
		t := &leaseTx{query: q, room: q.Limit, bytes: q.MaxBytes, chosen: chosen}
		err = s.withQueuePlanner(ctx, func(tx pgx.Tx) error { return t.run(ctx, tx) })
		chosen()
		if err != nil {
			if !errors.Is(err, ErrBlocked) {
				err = fmt.Errorf("lease lanes: %w", err)
			}
			return nil, err
		}
		if len(t.leased) > 0 || len(t.skipped) == 0 {
			leases := make([]*Lease, len(t.leased))
			for i, l := range t.leased {
				leases[i] = &l.Lease
			}
			return leases, nil
		}
	}
	return nil, nil
}

// run locks the lane whose turn it is. If that does not fill the request, it locks more lanes.
func (t *leaseTx) run(ctx context.Context, tx pgx.Tx) error {
	first, err := t.lockFirst(ctx, tx)
	if err != nil || first == nil {
		return err
	}
	first.recoverInFlight()
	if err := t.selectFirst(ctx, tx, first); err != nil {
		return err
	}
	if t.probe && len(t.leased) > 0 {
		if err := claimProbe(ctx, tx, t.query); err != nil {
			return err
		}
		first.Probe = true
	}
	if first.alone() || t.probe || t.full() {
		t.chosen()
	} else if err := t.addLanes(ctx, tx, first); err != nil {
		return err
	}
	return t.write(ctx, tx)
}

// full reports whether no further entry fits.
func (t *leaseTx) full() bool { return t.room <= 0 || t.query.MaxBytes > 0 && t.bytes <= 0 }

// lockFirst reads the state of the credential and locks the next lane; nil when none is due.
func (t *leaseTx) lockFirst(ctx context.Context, tx pgx.Tx) (*lane, error) {
	top := int16(topLane)
	if t.query.SkipRetryLanes {
		top = retryLaneBase - 1
	}
	kinds := make([]int16, len(t.query.Kinds))
	for i, k := range t.query.Kinds {
		kinds[i] = int16(k)
	}
	turn := newTurnQuery(kinds, top, 1)
	b := &pgx.Batch{}
	b.Queue(selectBlock, t.query.Credential[:])
	turn.queue(b)
	results := tx.SendBatch(ctx, b)
	defer func() { _ = results.Close() }()
	var err error
	if t.probe, err = scanBlock(results.QueryRow()); err != nil {
		return nil, err
	}
	lanes, err := scanLanes(results.Query())
	if err = errors.Join(err, results.Close()); err != nil {
		return nil, err
	}
	for len(lanes) == 0 && turn.examineFurther() {
		if lanes, err = turn.lock(ctx, tx); err != nil {
			return nil, err
		}
	}
	if len(lanes) == 0 {
		return nil, nil
	}
	return lanes[0], nil
}

// selectFirst selects entries of the lane whose turn it is: unconfirmed ones before all others.
func (t *leaseTx) selectFirst(ctx context.Context, tx pgx.Tx, l *lane) error {
	var selected []candidate
	var err error
	if len(l.unconfirmed) > 0 || l.Isolated {
		selected, err = selectResent(ctx, tx, t.query, l)
	}
	if err == nil && len(selected) == 0 && !l.Isolated {
		p := page{lanes: []*lane{l}, each: t.room, lookAhead: lookAhead}
		var found [][]candidate
		found, err = p.selectInOrder(ctx, tx, t.query)
		selected = found[0]
	}
	if err != nil {
		return err
	}
	t.take(l, selected)
	return nil
}

// addLanes fills the request from further lanes of the same kind. None of them gives more than its share, so
// that the bodies read stay few and a full lane leaves room for others.
func (t *leaseTx) addLanes(ctx context.Context, tx pgx.Tx, first *lane) error {
	want := max(minMoreLanes, (t.room+len(first.Entries))/max(1, len(first.Entries)))
	want = min(want, t.query.Lanes-1, t.room)
	if want <= 0 {
		return nil
	}
	// The first lane is locked by this transaction, so it is usually found again: not if others that have
	// waited as long come before it now.
	turn := newTurnQuery([]int16{int16(first.Kind)}, retryLaneBase-1, want+1)
	turn.unsent = true
	locked, err := turn.lock(ctx, tx)
	if err == nil && len(locked) <= want/2 && turn.examineFurther() {
		locked, err = turn.lock(ctx, tx)
	}
	if err != nil {
		return err
	}
	lanes := slices.DeleteFunc(locked, func(l *lane) bool {
		return l.ConnectionID == first.ConnectionID && l.Lane == first.Lane
	})
	lanes = lanes[:min(want, len(lanes))]
	if len(lanes) == 0 {
		return nil
	}
	p := page{lanes: lanes, each: min(t.room, 1+2*t.room/len(lanes)), lookAhead: lookAheadMore}
	found, err := p.selectInOrder(ctx, tx, t.query)
	if err != nil {
		return err
	}
	for i, l := range lanes {
		if sentBefore := func(c candidate) bool { return c.Attempts > 0 }; !slices.ContainsFunc(found[i],
			sentBefore) {
			t.take(l, found[i])
		}
	}
	return nil
}

// take leases a lane with the entries that still fit; without any room the lane stays as it is.
func (t *leaseTx) take(l *lane, selected []candidate) {
	if len(selected) == 0 {
		t.skipped = append(t.skipped, l)
		return
	}
	fit := 0
	for _, c := range selected {
		if fit == t.room || t.query.MaxBytes > 0 && len(c.Body) > t.bytes && (fit > 0 || len(t.leased) > 0) {
			break
		}
		fit++
		t.bytes -= len(c.Body)
	}
	if fit == 0 {
		return
	}
	t.room -= fit
	l.lease(selected[:fit])
	t.leased = append(t.leased, l)
}

const leaseLanes = `
UPDATE delivery.lanes AS l
SET fence = o.fence, leased_until = now() + $1::interval, leased_by = $2, served_at = now(),
    flight = o.flight::bigint[], unconfirmed = o.unconfirmed::bigint[]
FROM unnest($3::tid[], $4::bigint[], $5::text[], $6::text[]) AS o (tid, fence, flight, unconfirmed)
WHERE l.ctid = o.tid AND l.fence = o.fence - 1`

const freezeBodies = `
UPDATE delivery.entries AS e
SET body = f.body, awaits = NULL, awaits_minted = NULL
FROM unnest($1::tid[], $2::bigint[], $3::bytea[]) AS f (tid, seq, body)
WHERE e.ctid = f.tid AND e.seq = f.seq
RETURNING e.seq, e.ctid`

const skipLanes = `
UPDATE delivery.lanes AS l
SET fence = l.fence + 1, flight = '{}', unconfirmed = o.unconfirmed::bigint[], served_at = now(),
    leased_until = '-infinity', leased_by = NULL, ready = o.created_at IS NOT NULL,
    oldest_at = coalesce(o.created_at, '-infinity'),
    not_before = CASE WHEN l.lane < 8 AND o.created_at IS NOT NULL THEN now() + $1::interval
        ELSE coalesce(o.due, '-infinity') END
FROM (
    SELECT o.*, (
        SELECT e.created_at FROM delivery.entries e
        WHERE e.connection_id = o.connection_id AND e.kind = o.kind AND e.lane = o.lane ORDER BY e.seq LIMIT 1
    ) AS created_at, CASE WHEN o.lane >= 8 THEN (
        SELECT min(e.not_before) FROM delivery.entries e
        WHERE e.connection_id = o.connection_id AND e.kind = o.kind AND e.lane = o.lane AND e.lane >= 8
    ) END AS due
    FROM unnest($2::text[], $3::smallint[], $4::smallint[], $5::text[])
        AS o (connection_id, kind, lane, unconfirmed)
    OFFSET 0
) o
WHERE l.connection_id = o.connection_id AND l.kind = o.kind AND l.lane = o.lane`

// write stores the fences, the entries in flight and the frozen bodies, and releases the lanes that have
// nothing to send now. An empty lane goes to sleep.
//
// It takes the rows by their ctid: nobody else may change them while their lanes are locked.
func (t *leaseTx) write(ctx context.Context, tx pgx.Tx) error {
	b, d := &pgx.Batch{}, deltas{}
	if len(t.leased) > 0 {
		t.queueLease(b)
		t.queueFreeze(b)
	}
	if len(t.skipped) > 0 {
		keys := keysOf(t.skipped)
		b.Queue(skipLanes, awaitDelay, keys.connections, keys.kinds, keys.lanes,
			column(t.skipped, func(l *lane) string { return arrayOf(l.unconfirmed) }))
	}
	for _, l := range slices.Concat(t.leased, t.skipped) {
		d.add(&l.Lease, delta{unconfirmed: l.expired})
	}
	d.queue(b)
	if b.Len() == 0 {
		return nil
	}
	return tx.SendBatch(ctx, b).Close()
}

func (t *leaseTx) queueLease(b *pgx.Batch) {
	b.Queue(leaseLanes, t.query.TTL, t.query.RelayID,
		column(t.leased, func(l *lane) pgtype.TID { return l.tid }),
		column(t.leased, func(l *lane) int64 { return l.Fence }),
		column(t.leased, func(l *lane) string { return arrayOf(l.inFlight) }),
		column(t.leased, func(l *lane) string { return arrayOf(l.unconfirmed) }),
	).Exec(func(tag pgconn.CommandTag) error { return expectRows(tag, len(t.leased)) })
}

// queueFreeze stores the bodies that this lease freezes, and notes where the entries are then.
func (t *leaseTx) queueFreeze(b *pgx.Batch) {
	frozen := map[int64]*LeasedEntry{}
	var tids []pgtype.TID
	var seqs []int64
	var bodies [][]byte
	for _, l := range t.leased {
		for i, freeze := range l.frozen {
			if e := &l.Entries[i]; freeze {
				frozen[e.Seq] = e
				tids, seqs, bodies = append(tids, e.tid), append(seqs, e.Seq), append(bodies, e.Body)
			}
		}
	}
	if len(frozen) == 0 {
		return
	}
	b.Queue(freezeBodies, tids, seqs, bodies).Query(func(rows pgx.Rows) error {
		var seq int64
		var tid pgtype.TID
		tag, err := pgx.ForEachRow(rows, []any{&seq, &tid}, func() error {
			frozen[seq].tid = tid
			return nil
		})
		return errors.Join(err, expectRows(tag, len(frozen)))
	})
}

// expectRows fails when a statement missed rows that this transaction holds, which rolls it back.
func expectRows(tag pgconn.CommandTag, want int) error {
	if got := tag.RowsAffected(); got != int64(want) {
		return fmt.Errorf("%d rows were changed instead of %d", got, want)
	}
	return nil
}
