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
