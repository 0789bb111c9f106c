package deliveries_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"storefront.internal/shared/deliveries"
)

func TestDeliverInOrder(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	q.enqueue(interaction(shop, "dec_1", "sig_1"), interaction(shop, "dec_1", "sig_2"))
	q.enqueue(interaction(shop, "dec_1", "sig_3"))
	l := q.mustLease()
	if got, want := ids(l), []string{"sig_1", "sig_2", "sig_3"}; !slices.Equal(got, want) {
		t.Fatalf("took %v, want %v", got, want)
	}
	if string(l.Entries[0].Body) != `{"signal_id":"sig_1","decision_id":"dec_1"}` {
		t.Errorf("body %s", l.Entries[0].Body)
	}
	if second := q.lease(query()); second != nil {
		t.Errorf("a leased lane was leased again: %v", ids(second))
	}
	q.recount()
	if done := q.complete(l, delivered(l)...); done.Delivered != 3 {
		t.Errorf("completed %+v", done)
	}
	q.recount()
	if n := scan[int](q, `SELECT count(*) FROM delivery.lanes WHERE ready`); n != 0 {
		t.Errorf("%d empty lanes are awake", n)
	}
}

func TestLeaseIsBounded(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	for i := range 5 {
		q.enqueueOnly(interaction(shop, "dec_1", fmt.Sprintf("sig_%d", i)))
	}
	q.compact()
	tq := query()
	tq.Limit = 2
	l := q.lease(tq)
	if got := ids(l); !slices.Equal(got, []string{"sig_0", "sig_1"}) {
		t.Errorf("took %v", got)
	}
	q.complete(l)
	tq = query()
	tq.MaxBytes = 1
	if l = q.lease(tq); !slices.Equal(ids(l), []string{"sig_0"}) {
		t.Errorf("took %v, want the first whatever its size", ids(l))
	}
}

func TestEnqueueRejects(t *testing.T) {
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

// TestExpiredLease: what was in flight is unconfirmed, and goes first with the same bytes; the late worker
// changes nothing.
func TestExpiredLease(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	q.enqueue(interaction(shop, "dec_1", "sig_1"), interaction(shop, "dec_1", "sig_2"))
	sleeper := q.mustLease()
	q.enqueue(interaction(shop, "dec_1", "sig_3"))
	q.expire()
	l := q.mustLease()
	if got := ids(l); !slices.Equal(got, []string{"sig_1", "sig_2"}) || !l.Entries[0].Unconfirmed ||
		!l.Entries[1].Unconfirmed {
		t.Fatalf("took %+v, want the two unconfirmed alone", l.Entries)
	}
	if n := q.view().Total.UnconfirmedCreations; n != 2 {
		t.Errorf("%d unconfirmed, want 2", n)
	}
	if _, err := completeOne(context.Background(), q.relay, sleeper, delivered(sleeper)...); !errors.Is(err,
		errLeaseLost) {
		t.Errorf("the late worker completed: %v", err)
	}
	if n := q.view().Total.Pending; n != 3 {
		t.Errorf("%d pending, want 3", n)
	}
	q.complete(l, delivered(l)...)
	q.recount()
	if l = q.mustLease(); !slices.Equal(ids(l), []string{"sig_3"}) || l.Entries[0].Unconfirmed {
		t.Errorf("then took %+v", l.Entries)
	}
}

// TestCompleteOnce: a completion whose COMMIT had no answer is repeated, and counts once.
func TestCompleteOnce(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	q.enqueue(interaction(shop, "dec_1", "sig_1"))
	l := q.mustLease()
	q.complete(l, delivered(l)...)
	if _, err := completeOne(context.Background(), q.relay, l, delivered(l)...); !errors.Is(err,
		errLeaseLost) {
		t.Errorf("completed twice: %v", err)
	}
	q.recount()
}

func TestUnconfirmedUntilAnswered(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	q.enqueue(interaction(shop, "dec_1", "sig_1"), interaction(shop, "dec_1", "sig_2"))
	l := q.mustLease()
	first := slices.Clone(l.Entries[0].Body)
	q.complete(l, all(l, deliveries.Outcome{Status: deliveries.Failed, Unconfirmed: true})...)
	q.recount()
	q.due()
	l = q.mustLease()
	if !l.Entries[0].Unconfirmed || l.Entries[0].Attempts != 1 || string(l.Entries[0].Body) != string(first) {
		t.Errorf("took %+v", l.Entries[0])
	}
	q.complete(l, all(l, deliveries.Outcome{Status: deliveries.Failed})...) // a 503 confirms nothing
	if n := q.view().Total.UnconfirmedCreations; n != 2 {
		t.Errorf("%d unconfirmed after a 503, want 2", n)
	}
	q.due()
	l = q.mustLease()
	q.complete(l, deliveries.Outcome{Seq: l.Entries[0].Seq, Status: deliveries.Delivered},
		deliveries.Outcome{Seq: l.Entries[1].Seq, Status: deliveries.DeadLettered, Reason: "rejected: x"})
	if v := q.view(); v.Total.UnconfirmedCreations != 0 || v.Total.Pending != 0 || v.Total.DeadLast24h != 1 {
		t.Errorf("in the end %+v", v.Total)
	}
	q.recount()
}

// TestRetryLane: an entry in the retry lane does not hold up others, has its own time, and stays unconfirmed.
func TestRetryLane(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	q.enqueue(
		interaction(shop, "dec_1", "sig_1"),
		interaction(shop, "dec_1", "sig_2"),
		interaction(shop, "dec_1", "sig_3"),
	)
	l := q.mustLease()
	q.complete(
		l,
		deliveries.Outcome{
			Seq:         l.Entries[0].Seq,
			Status:      deliveries.Failed,
			Unconfirmed: true,
			Isolate:     true,
			RetryIn:     time.Hour,
		},
		deliveries.Outcome{
			Seq:     l.Entries[1].Seq,
			Status:  deliveries.Failed,
			Isolate: true,
			RetryIn: 2 * time.Hour,
		},
	)
	q.recount()
	l = q.mustLease()
	if l.Isolated || !slices.Equal(ids(l), []string{"sig_3"}) {
		t.Fatalf("took %+v, want the one that did not fail", l)
	}
	q.complete(l, delivered(l)...)
	if l = q.lease(query()); l != nil {
		t.Fatalf("took %v before its time", ids(l))
	}
	q.due()
	tq := query()
	tq.SkipRetryLanes = true
	if l = q.lease(tq); l != nil {
		t.Fatalf("took %v, asked for what is in order", ids(l))
	}
	l = q.mustLease()
	if !l.Isolated || !slices.Equal(ids(l), []string{"sig_1"}) || !l.Entries[0].Unconfirmed {
		t.Fatalf("took %+v, want the unconfirmed one first", l)
	}
	q.complete(l, delivered(l)...)
	q.recount()
	l = q.mustLease()
	if !l.Isolated || !slices.Equal(ids(l), []string{"sig_2"}) || l.Entries[0].Attempts != 1 {
		t.Fatalf("took %+v", l)
	}
	q.complete(l, all(l, deliveries.Outcome{Status: deliveries.Failed, RetryIn: time.Hour})...)
	if l = q.lease(query()); l != nil {
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
		t.Errorf("the view counts an envelope: %+v", v)
	}
	if v, err := q.relay.ViewOf(context.Background(), deliveries.Envelope); err != nil ||
		v.Total.Pending != 1 {
		t.Errorf("view of envelopes: %+v, %v", v.Total, err)
	}
	tq := query()
	tq.Kinds = []deliveries.Kind{deliveries.Interaction}
	if l := q.lease(tq); l != nil {
		t.Errorf("took a %s", l.Kind)
	}
	l := q.mustLease()
	if l.Kind != deliveries.Envelope || ids(l)[0] != "obs_1" {
		t.Errorf("took %+v", l)
	}
	q.complete(l, delivered(l)...)
	if v, err := q.relay.ViewOf(context.Background(), deliveries.Envelope); err != nil ||
		v.Total.Pending != 0 {
		t.Errorf("view of envelopes: %+v, %v", v.Total, err)
	}
}
