package deliveries_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"storefront.internal/shared/deliveries"
	"storefront.internal/shared/ident"
	"storefront.internal/shared/testkit"
)

// queue is a queue on a database of its own, seen as each service sees it, and as an administrator who can
// move time.
type queue struct {
	t       testing.TB
	relay   *deliveries.Store
	control *deliveries.Store
	pools   struct{ relay, control, admin *pgxpool.Pool }
}

func newQueue(t testing.TB) *queue {
	t.Helper()
	url := testkit.Postgres(t)
	q := &queue{t: t}
	q.pools.admin = testkit.Pool(t, url)
	q.pools.relay = testkit.Pool(t, testkit.PostgresAs(t, url, "storefront_relay"))
	q.pools.control = testkit.Pool(t, testkit.PostgresAs(t, url, "storefront_control"))
	q.relay = deliveries.NewStore(q.pools.relay)
	q.control = deliveries.NewStore(q.pools.control)
	return q
}

var token = deliveries.Credential{1, 2, 3}

// shop and other are two connections.
const (
	shop  = ident.ConnectionID("con_shop")
	other = ident.ConnectionID("con_other")
)

func query() deliveries.LeaseQuery {
	return deliveries.LeaseQuery{
		RelayID: "relay", Credential: token,
		Kinds: []deliveries.Kind{deliveries.Interaction, deliveries.Envelope},
		Limit: 200, MaxBytes: 1 << 20, TTL: time.Minute, DecisionWait: 30 * time.Second,
	}
}

func interaction(c ident.ConnectionID, key, id string) deliveries.Entry {
	return deliveries.Entry{
		Kind: deliveries.Interaction, ConnectionID: c, LaneKey: key, ID: id,
		Body: fmt.Appendf(nil, `{"signal_id":%q,"decision_id":%q}`, id, key),
	}
}

func (q *queue) enqueue(entries ...deliveries.Entry) {
	q.t.Helper()
	q.enqueueOnly(entries...)
	q.compact()
}

func (q *queue) enqueueOnly(entries ...deliveries.Entry) {
	q.t.Helper()
	err := pgx.BeginFunc(context.Background(), q.pools.relay, func(tx pgx.Tx) error {
		return deliveries.Enqueue(context.Background(), tx, entries)
	})
	if err != nil {
		q.t.Fatalf("enqueue: %v", err)
	}
}

func (q *queue) compact() {
	q.t.Helper()
	if _, err := q.relay.Compact(context.Background()); err != nil {
		q.t.Fatal(err)
	}
}

// refreshHeads refreshes the heads of all waiting lanes, and returns how many had none.
func (q *queue) refreshHeads() int {
	q.t.Helper()
	const withoutHead = `SELECT count(*) FROM delivery.lanes WHERE ready AND leased_by IS NULL AND oldest_at = '-infinity'`
	n := scan[int](q, withoutHead)
	for more := true; more; {
		var err error
		if more, err = q.relay.RefreshLaneHeads(context.Background(), 0); err != nil {
			q.t.Fatal(err)
		}
	}
	return n - scan[int](q, withoutHead)
}

func (q *queue) lease(tq deliveries.LeaseQuery) *deliveries.Lease {
	q.t.Helper()
	l, err := leaseOne(context.Background(), q.relay, tq)
	if err != nil {
		q.t.Fatalf("lease: %v", err)
	}
	return l
}

// leaseOne leases one lane; nil when nothing is due.
func leaseOne(ctx context.Context, s *deliveries.Store, tq deliveries.LeaseQuery) (*deliveries.Lease, error) {
	tq.Lanes = 1
	leases, err := s.Lease(ctx, tq)
	if err != nil || len(leases) == 0 {
		return nil, err
	}
	return leases[0], nil
}

// leaseLanes leases several lanes together.
func (q *queue) leaseLanes(tq deliveries.LeaseQuery) []*deliveries.Lease {
	q.t.Helper()
	leases, err := q.relay.Lease(context.Background(), tq)
	if err != nil {
		q.t.Fatalf("lease: %v", err)
	}
	return leases
}

var errLeaseLost = errors.New("the lease was lost")

// completeOne completes the lease of one lane.
func completeOne(
	ctx context.Context, s *deliveries.Store, l *deliveries.Lease, outcomes ...deliveries.Outcome,
) (deliveries.Completed, error) {
	done, err := s.Complete(ctx, completion(deliveries.LaneCompletion{Lease: l, Outcomes: outcomes}))
	if err == nil && len(done.Lost) > 0 {
		err = errLeaseLost
	}
	return done, err
}

func (q *queue) mustLease() *deliveries.Lease {
	q.t.Helper()
	l := q.lease(query())
	if l == nil {
		q.t.Fatal("nothing to lease")
	}
	return l
}

func (q *queue) complete(l *deliveries.Lease, outcomes ...deliveries.Outcome) deliveries.Completed {
	q.t.Helper()
	done, err := completeOne(context.Background(), q.relay, l, outcomes...)
	if err != nil {
		q.t.Fatalf("complete: %v", err)
	}
	return done
}

func completion(lanes ...deliveries.LaneCompletion) deliveries.Completion {
	return deliveries.Completion{Lanes: lanes, DeadAttempts: 8, DeadAfter: 24 * time.Hour}
}

func all(l *deliveries.Lease, o deliveries.Outcome) []deliveries.Outcome {
	var outcomes []deliveries.Outcome
	for _, e := range l.Entries {
		o.Seq = e.Seq
		outcomes = append(outcomes, o)
	}
	return outcomes
}

func delivered(l *deliveries.Lease) []deliveries.Outcome {
	return all(l, deliveries.Outcome{Status: deliveries.Delivered})
}

func ids(l *deliveries.Lease) []string {
	var s []string
	for _, e := range l.Entries {
		s = append(s, e.ID)
	}
	return s
}

func (q *queue) view() deliveries.View {
	q.t.Helper()
	v, err := q.control.View(context.Background())
	if err != nil {
		q.t.Fatal(err)
	}
	return v
}

// admin runs a statement that moves time or looks behind the package's back.
func (q *queue) admin(sql string, args ...any) {
	q.t.Helper()
	if _, err := q.pools.admin.Exec(context.Background(), sql, args...); err != nil {
		q.t.Fatalf("%s: %v", sql, err)
	}
}

func scan[T any](q *queue, sql string, args ...any) T {
	q.t.Helper()
	var v T
	if err := q.pools.admin.QueryRow(context.Background(), sql, args...).Scan(&v); err != nil {
		q.t.Fatalf("%s: %v", sql, err)
	}
	return v
}

// expire ends all leases as if their time had run out, and makes everything due.
func (q *queue) expire() {
	q.t.Helper()
	q.admin(`UPDATE delivery.lanes SET leased_until = '-infinity'`)
	q.due()
}

// firstRetryIn ends every wait.
func (q *queue) due() {
	q.t.Helper()
	q.admin(`UPDATE delivery.lanes SET not_before = '-infinity'`)
	q.admin(`UPDATE delivery.entries SET not_before = '-infinity' WHERE not_before IS NOT NULL`)
}

// recount compares the view with the rows themselves.
func (q *queue) recount() {
	q.t.Helper()
	v := q.view()
	pending := scan[int64](q, `SELECT count(*) FROM delivery.entries WHERE kind = 1`)
	unconfirmed := scan[int64](
		q,
		`SELECT coalesce(sum(cardinality(unconfirmed)), 0) FROM delivery.lanes WHERE kind = 1`,
	)
	dead := scan[int64](
		q,
		`SELECT count(*) FROM delivery.dead WHERE kind = 1 AND died_at > now() - interval '24 hours'`,
	)
	if v.Total.Pending != pending || v.Total.UnconfirmedCreations != unconfirmed ||
		v.Total.DeadLast24h != dead {
		q.t.Fatalf(
			"the view says %+v, the rows %d pending, %d unconfirmed, %d dead",
			v.Total,
			pending,
			unconfirmed,
			dead,
		)
	}
	oldest := scan[*time.Time](q, `SELECT min(created_at) FROM delivery.entries WHERE kind = 1`)
	if (oldest == nil) != v.Total.OldestPendingAt.IsZero() ||
		oldest != nil && !oldest.Equal(v.Total.OldestPendingAt) {
		q.t.Fatalf("oldest: the view says %v, the rows %v", v.Total.OldestPendingAt, oldest)
	}
}
