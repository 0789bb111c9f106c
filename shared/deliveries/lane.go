package deliveries

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

// selectLanes locks the next lanes that are due: of each connection first the lane that has waited longest,
// and the connections in the order in which they were last served in any of their lanes. So eight busy lanes
// of one tenant get no more turns than one lane of another. $4 leaves out lanes with entries that were sent
// before.
//
// How many lanes are examined is a constant of the statement: with a parameter the planner does not know how
// few they are, and prefers to sort all lanes.
//
// The statement takes rows by their ctid, which is what it has just read, instead of looking them up again. A
// row that has changed since has to meet the conditions anew.
func selectLanes(examined int) string {
	return selectWaitingLanes + strconv.Itoa(examined) + lockTurns
}

const selectWaitingLanes = `
WITH waiting AS MATERIALIZED (
    SELECT ctid AS tid, connection_id, served_at
    FROM delivery.lanes
    WHERE ready AND kind = ANY ($1) AND lane <= $2 AND not_before <= now() AND leased_until <= now()
        AND (NOT $4 OR flight = '{}' AND unconfirmed = '{}')
    ORDER BY served_at
    LIMIT `

const lockTurns = `
), turns AS MATERIALIZED (
    SELECT w.tid, w.served_at AS lane_served_at, latest.served_at,
        row_number() OVER (PARTITION BY w.connection_id ORDER BY w.served_at) AS turn
    FROM waiting w
    CROSS JOIN LATERAL (
        SELECT max(l.served_at) AS served_at FROM delivery.lanes l WHERE l.connection_id = w.connection_id
    ) latest
)
SELECT l.ctid, l.connection_id, l.kind, l.lane, l.fence, l.flight, l.unconfirmed, now()
FROM turns t
JOIN delivery.lanes l ON l.ctid = t.tid
WHERE l.ready AND l.not_before <= now() AND l.leased_until <= now()
    AND (NOT $4 OR l.flight = '{}' AND l.unconfirmed = '{}')
ORDER BY t.turn, t.served_at, t.lane_served_at
LIMIT $3
FOR UPDATE OF l SKIP LOCKED`

const (
	// examineMore is how many lanes are examined beyond those that are wanted, since the order among
	// connections needs a choice and other workers may hold some.
	examineMore = 56
	// awaitDelay is how long a lane waits in which every entry still awaits its Decision.
	awaitDelay = 200 * time.Millisecond
	// isolatedLimit bounds the entries in the lease of a retry lane.
	isolatedLimit = 16
)

// examineSteps are the numbers of lanes that a statement may examine.
func examineSteps() []int { return []int{64, 256, 1024, 8192} }

// turnQuery asks for the next lanes.
type turnQuery struct {
	kinds   []int16
	top     int16 // the highest lane
	want    int
	examine []int // the steps from the first that is enough
	unsent  bool  // only lanes whose entries were never sent
}

func newTurnQuery(kinds []int16, top int16, want int) turnQuery {
	q := turnQuery{kinds: kinds, top: top, want: want, examine: examineSteps()}
	for len(q.examine) > 1 && q.examine[0] < want+examineMore {
		q.examine = q.examine[1:]
	}
	return q
}

// examineFurther lets the next query examine more lanes, for when other workers hold the first ones. It
// reports false when there is no further step.
func (q *turnQuery) examineFurther() bool {
	if len(q.examine) == 1 {
		return false
	}
	q.examine = q.examine[1:]
	return true
}

func (q *turnQuery) statement() (sql string, args []any) {
	return selectLanes(q.examine[0]), []any{q.kinds, q.top, q.want, q.unsent}
}

func (q *turnQuery) queue(b *pgx.Batch) {
	sql, args := q.statement()
	b.Queue(sql, args...)
}

func (q *turnQuery) lock(ctx context.Context, tx pgx.Tx) ([]*lane, error) {
	sql, args := q.statement()
	return scanLanes(tx.Query(ctx, sql, args...))
}

// lane is the locked row of a lane.
type lane struct {
	Lease
	tid         pgtype.TID
	inFlight    []int64
	unconfirmed []int64
	frozen      []bool // of each entry: this lease freezes the body
	expired     int    // entries of an expired lease that were not unconfirmed before
}

func scanLanes(rows pgx.Rows, err error) ([]*lane, error) {
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (*lane, error) {
		l := &lane{}
		err := row.Scan(&l.tid, &l.ConnectionID, &l.Kind, &l.Lane, &l.Fence, &l.inFlight, &l.unconfirmed,
			&l.LeasedAt)
		l.Isolated = l.Lane >= retryLaneBase
		return l, err
	})
}

// recoverInFlight makes the entries of an expired lease unconfirmed.
func (l *lane) recoverInFlight() {
	for _, seq := range l.inFlight {
		if !slices.Contains(l.unconfirmed, seq) {
			l.unconfirmed = append(l.unconfirmed, seq)
			l.expired++
		}
	}
	l.inFlight = nil
}

// alone reports whether the lane must not be leased with others.
func (l *lane) alone() bool {
	return l.Isolated || len(l.unconfirmed) > 0 ||
		slices.ContainsFunc(l.Entries, func(e LeasedEntry) bool { return e.Attempts > 0 })
}

// lease makes the entries those of the lease.
func (l *lane) lease(selected []candidate) {
	l.Fence++
	l.contiguous = selected[len(selected)-1].position == int64(len(selected))
	for _, c := range selected {
		c.Unconfirmed = slices.Contains(l.unconfirmed, c.Seq)
		l.inFlight = append(l.inFlight, c.Seq)
		l.Entries = append(l.Entries, c.LeasedEntry)
		l.frozen = append(l.frozen, c.freeze)
	}
}

// laneKeys are the keys of lanes as columns.
type laneKeys struct {
	connections  []string
	kinds, lanes []int16
}

func (k *laneKeys) add(l *Lease) {
	k.connections = append(k.connections, string(l.ConnectionID))
	k.kinds, k.lanes = append(k.kinds, int16(l.Kind)), append(k.lanes, l.Lane)
}

func keysOf(lanes []*lane) (k laneKeys) {
	for _, l := range lanes {
		k.add(&l.Lease)
	}
	return k
}

// column is one value of each element.
func column[E, V any](all []E, value func(E) V) []V {
	values := make([]V, len(all))
	for i, e := range all {
		values[i] = value(e)
	}
	return values
}

// arrayOf writes an array of PostgreSQL as text, since unnest cannot take arrays of different lengths.
func arrayOf(seqs []int64) string {
	text := []byte{'{'}
	for i, seq := range seqs {
		if i > 0 {
			text = append(text, ',')
		}
		text = strconv.AppendInt(text, seq, 10)
	}
	return string(append(text, '}'))
}
