package deliveries_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"storefront.internal/shared/deliveries"
	"storefront.internal/shared/ident"
	"storefront.internal/shared/testkit"
)

// queue is a queue on a database of its own, seen as each service sees it, and as an administrator who can move time.
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

func query() deliveries.TakeQuery {
	return deliveries.TakeQuery{
		RelayID: "relay", Credential: token, Kinds: []deliveries.Kind{deliveries.Interaction, deliveries.Envelope},
		Limit: 200, MaxBytes: 1 << 20, Lease: time.Minute, DecisionWait: 30 * time.Second,
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

func (q *queue) take(tq deliveries.TakeQuery) *deliveries.Lease {
	q.t.Helper()
	l, err := q.relay.Take(context.Background(), tq)
	if err != nil {
		q.t.Fatalf("take: %v", err)
	}
	return l
}

func (q *queue) mustTake() *deliveries.Lease {
	q.t.Helper()
	l := q.take(query())
	if l == nil {
		q.t.Fatal("nothing to take")
	}
	return l
}

func (q *queue) settle(l *deliveries.Lease, outcomes ...deliveries.Outcome) deliveries.Settled {
	q.t.Helper()
	done, err := q.relay.Settle(context.Background(), l, settlement(outcomes...))
	if err != nil {
		q.t.Fatalf("settle: %v", err)
	}
	return done
}

func settlement(outcomes ...deliveries.Outcome) deliveries.Settlement {
	return deliveries.Settlement{Outcomes: outcomes, DeadAttempts: 8, DeadAfter: 24 * time.Hour}
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
	return all(l, deliveries.Outcome{Fate: deliveries.Delivered})
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

// due ends every wait.
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
	unconfirmed := scan[int64](q, `SELECT coalesce(sum(cardinality(unconfirmed)), 0) FROM delivery.lanes WHERE kind = 1`)
	dead := scan[int64](q, `SELECT count(*) FROM delivery.dead WHERE kind = 1 AND died_at > now() - interval '24 hours'`)
	if v.Total.Pending != pending || v.Total.UnconfirmedCreations != unconfirmed || v.Total.DeadLast24h != dead {
		q.t.Fatalf("the view says %+v, the rows %d pending, %d unconfirmed, %d dead", v.Total, pending, unconfirmed, dead)
	}
	oldest := scan[*time.Time](q, `SELECT min(created_at) FROM delivery.entries WHERE kind = 1`)
	if (oldest == nil) != v.Total.OldestPendingAt.IsZero() || oldest != nil && !oldest.Equal(v.Total.OldestPendingAt) {
		q.t.Fatalf("oldest: the view says %v, the rows %v", v.Total.OldestPendingAt, oldest)
	}
}

func TestDeliverInOrder(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	q.enqueue(interaction(shop, "dec_1", "sig_1"), interaction(shop, "dec_1", "sig_2"))
	q.enqueue(interaction(shop, "dec_1", "sig_3"))
	l := q.mustTake()
	if got, want := ids(l), []string{"sig_1", "sig_2", "sig_3"}; !slices.Equal(got, want) {
		t.Fatalf("took %v, want %v", got, want)
	}
	if string(l.Entries[0].Body) != `{"signal_id":"sig_1","decision_id":"dec_1"}` {
		t.Errorf("body %s", l.Entries[0].Body)
	}
	if second := q.take(query()); second != nil {
		t.Errorf("a leased lane was leased again: %v", ids(second))
	}
	q.recount()
	if done := q.settle(l, delivered(l)...); done.Delivered != 3 {
		t.Errorf("settled %+v", done)
	}
	q.recount()
	if n := scan[int](q, `SELECT count(*) FROM delivery.lanes WHERE ready`); n != 0 {
		t.Errorf("%d empty lanes are awake", n)
	}
}

func TestTakeIsBounded(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	for i := range 5 {
		q.enqueueOnly(interaction(shop, "dec_1", fmt.Sprintf("sig_%d", i)))
	}
	q.compact()
	tq := query()
	tq.Limit = 2
	l := q.take(tq)
	if got := ids(l); !slices.Equal(got, []string{"sig_0", "sig_1"}) {
		t.Errorf("took %v", got)
	}
	q.settle(l)
	tq = query()
	tq.MaxBytes = 1
	if l = q.take(tq); !slices.Equal(ids(l), []string{"sig_0"}) {
		t.Errorf("took %v, want the first whatever its size", ids(l))
	}
}

func TestEnqueueRefuses(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	f := func(e deliveries.Entry) {
		t.Helper()
		err := pgx.BeginFunc(context.Background(), q.pools.relay, func(tx pgx.Tx) error {
			return deliveries.Enqueue(context.Background(), tx, []deliveries.Entry{e})
		})
		if err == nil {
			t.Errorf("%+v was enqueued", e)
		}
	}
	f(deliveries.Entry{Kind: 3, ConnectionID: shop, Body: []byte(`{}`)})
	f(deliveries.Entry{Kind: deliveries.Envelope, ConnectionID: shop, Body: []byte(`{}`), Awaits: "dec_1"})
	f(deliveries.Entry{Kind: deliveries.Interaction, ConnectionID: shop, Body: nil})
}

// TestExpiredLease: what was being sent is unconfirmed, goes first and with the same bytes; the sleeper changes nothing.
func TestExpiredLease(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	q.enqueue(interaction(shop, "dec_1", "sig_1"), interaction(shop, "dec_1", "sig_2"))
	sleeper := q.mustTake()
	q.enqueue(interaction(shop, "dec_1", "sig_3"))
	q.expire()
	l := q.mustTake()
	if got := ids(l); !slices.Equal(got, []string{"sig_1", "sig_2"}) || !l.Entries[0].Unconfirmed || !l.Entries[1].Unconfirmed {
		t.Fatalf("took %+v, want the two unconfirmed alone", l.Entries)
	}
	if n := q.view().Total.UnconfirmedCreations; n != 2 {
		t.Errorf("%d unconfirmed, want 2", n)
	}
	if _, err := q.relay.Settle(context.Background(), sleeper, settlement(delivered(sleeper)...)); !errors.Is(err, deliveries.ErrFenced) {
		t.Errorf("the sleeper settled: %v", err)
	}
	if n := q.view().Total.Pending; n != 3 {
		t.Errorf("%d pending, want 3", n)
	}
	q.settle(l, delivered(l)...)
	q.recount()
	if l = q.mustTake(); !slices.Equal(ids(l), []string{"sig_3"}) || l.Entries[0].Unconfirmed {
		t.Errorf("then took %+v", l.Entries)
	}
}

// TestSettleOnce: a settlement whose COMMIT had no answer is repeated, and counts once.
func TestSettleOnce(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	q.enqueue(interaction(shop, "dec_1", "sig_1"))
	l := q.mustTake()
	q.settle(l, delivered(l)...)
	if _, err := q.relay.Settle(context.Background(), l, settlement(delivered(l)...)); !errors.Is(err, deliveries.ErrFenced) {
		t.Errorf("settled twice: %v", err)
	}
	q.recount()
}

func TestUnconfirmedUntilAnswered(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	q.enqueue(interaction(shop, "dec_1", "sig_1"), interaction(shop, "dec_1", "sig_2"))
	l := q.mustTake()
	first := slices.Clone(l.Entries[0].Body)
	q.settle(l, all(l, deliveries.Outcome{Fate: deliveries.Failed, Unconfirmed: true})...)
	q.recount()
	q.due()
	l = q.mustTake()
	if !l.Entries[0].Unconfirmed || l.Entries[0].Attempts != 1 || string(l.Entries[0].Body) != string(first) {
		t.Errorf("took %+v", l.Entries[0])
	}
	q.settle(l, all(l, deliveries.Outcome{Fate: deliveries.Failed})...) // a 503 confirms nothing
	if n := q.view().Total.UnconfirmedCreations; n != 2 {
		t.Errorf("%d unconfirmed after a 503, want 2", n)
	}
	q.due()
	l = q.mustTake()
	q.settle(l, deliveries.Outcome{Seq: l.Entries[0].Seq, Fate: deliveries.Delivered},
		deliveries.Outcome{Seq: l.Entries[1].Seq, Fate: deliveries.Died, Reason: "rejected: x"})
	if v := q.view(); v.Total.UnconfirmedCreations != 0 || v.Total.Pending != 0 || v.Total.DeadLast24h != 1 {
		t.Errorf("in the end %+v", v.Total)
	}
	q.recount()
}

// TestAside: what fails alone holds nobody back, has its own time, and stays unconfirmed.
func TestAside(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	q.enqueue(interaction(shop, "dec_1", "sig_1"), interaction(shop, "dec_1", "sig_2"), interaction(shop, "dec_1", "sig_3"))
	l := q.mustTake()
	q.settle(l,
		deliveries.Outcome{Seq: l.Entries[0].Seq, Fate: deliveries.Failed, Unconfirmed: true, Aside: true, RetryIn: time.Hour},
		deliveries.Outcome{Seq: l.Entries[1].Seq, Fate: deliveries.Failed, Aside: true, RetryIn: 2 * time.Hour})
	q.recount()
	l = q.mustTake()
	if l.Alone || !slices.Equal(ids(l), []string{"sig_3"}) {
		t.Fatalf("took %+v, want the one that did not fail", l)
	}
	q.settle(l, delivered(l)...)
	if l = q.take(query()); l != nil {
		t.Fatalf("took %v before its time", ids(l))
	}
	q.due()
	tq := query()
	tq.InOrderOnly = true
	if l = q.take(tq); l != nil {
		t.Fatalf("took %v, asked for what is in order", ids(l))
	}
	l = q.mustTake()
	if !l.Alone || !slices.Equal(ids(l), []string{"sig_1"}) || !l.Entries[0].Unconfirmed {
		t.Fatalf("took %+v, want the unconfirmed one first", l)
	}
	q.settle(l, delivered(l)...)
	q.recount()
	l = q.mustTake()
	if !l.Alone || !slices.Equal(ids(l), []string{"sig_2"}) || l.Entries[0].Attempts != 1 {
		t.Fatalf("took %+v", l)
	}
	q.settle(l, all(l, deliveries.Outcome{Fate: deliveries.Failed, RetryIn: time.Hour})...)
	if l = q.take(query()); l != nil {
		t.Errorf("took %v before its time", ids(l))
	}
	q.recount()
}

func TestEnvelopes(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	err := pgx.BeginFunc(context.Background(), q.pools.control, func(tx pgx.Tx) error {
		return deliveries.Enqueue(context.Background(), tx, []deliveries.Entry{{
			Kind: deliveries.Envelope, ConnectionID: shop, LaneKey: "product/1", ID: "obs_1", Body: []byte(`{"specversion":"1.0"}`),
		}})
	})
	if err != nil {
		t.Fatal(err)
	}
	q.compact()
	if v := q.view(); v.Total.Pending != 0 || len(v.Connections) != 0 {
		t.Errorf("operation 9 counts an envelope: %+v", v)
	}
	if v, err := q.relay.ViewOf(context.Background(), deliveries.Envelope); err != nil || v.Total.Pending != 1 {
		t.Errorf("view of envelopes: %+v, %v", v.Total, err)
	}
	tq := query()
	tq.Kinds = []deliveries.Kind{deliveries.Interaction}
	if l := q.take(tq); l != nil {
		t.Errorf("took a %s", l.Kind)
	}
	l := q.mustTake()
	if l.Kind != deliveries.Envelope || ids(l)[0] != "obs_1" {
		t.Errorf("took %+v", l)
	}
	q.settle(l, delivered(l)...)
	if v, err := q.relay.ViewOf(context.Background(), deliveries.Envelope); err != nil || v.Total.Pending != 0 {
		t.Errorf("view of envelopes: %+v, %v", v.Total, err)
	}
}
