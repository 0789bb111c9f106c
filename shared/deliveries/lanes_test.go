package deliveries_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"storefront.internal/shared/deliveries"
	"storefront.internal/shared/ident"
)

func connection(n int) ident.ConnectionID { return ident.ConnectionID(fmt.Sprintf("con_%03d", n)) }

// lanesQuery asks for many lanes at once.
func lanesQuery() deliveries.LeaseQuery {
	tq := query()
	tq.Lanes = 200
	return tq
}

// TestLanesAreLeasedTogether: one call leases the lanes of several connections and of one kind, with as many
// entries as fit, and each lane gives its first ones.
func TestLanesAreLeasedTogether(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	for c := range 5 {
		for i := range 4 {
			q.enqueueOnly(interaction(connection(c), "dec_1", fmt.Sprintf("sig_%d", i)))
		}
	}
	envelope := interaction(connection(9), "p", "obs_1")
	envelope.Kind = deliveries.Envelope
	q.enqueue(envelope)
	interactions := lanesQuery()
	interactions.Kinds = []deliveries.Kind{deliveries.Interaction}
	interactions.Limit = 10
	leases := q.leaseLanes(interactions)
	n := 0
	for _, l := range leases {
		n += len(l.Entries)
		want := []string{"sig_0", "sig_1", "sig_2", "sig_3"}
		if !slices.Equal(ids(l), want[:len(l.Entries)]) {
			t.Errorf("%s gave %v", l.ConnectionID, ids(l))
		}
	}
	if n != 10 || len(leases) < 3 {
		t.Errorf("%d entries of %d lanes", n, len(leases))
	}
	q.recount()
	rest := q.leaseLanes(interactions)
	for _, l := range rest {
		n += len(l.Entries)
	}
	if n > 20 || len(leases)+len(rest) != 5 {
		t.Errorf("%d entries of %d and %d lanes", n, len(leases), len(rest))
	}
	if l := q.leaseLanes(lanesQuery()); len(l) != 1 || l[0].Kind != deliveries.Envelope {
		t.Errorf("%d lanes, want the envelope's", len(l))
	}
}

// TestGreedyConnection: a connection with eight full lanes does not hold up others.
func TestGreedyConnection(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	for i := range 800 {
		q.enqueueOnly(interaction("con_huge", fmt.Sprint("dec_", i), fmt.Sprintf("sig_h%d", i)))
	}
	const small = 60
	waiting := map[ident.ConnectionID]bool{}
	for c := range small {
		q.enqueueOnly(interaction(connection(c), "dec_1", "sig_1"))
		waiting[connection(c)] = true
	}
	q.compact()
	tq := lanesQuery()
	tq.Limit = 20
	for calls := 0; len(waiting) > 0; calls++ {
		if calls == small/tq.Limit+2 { // of which the greedy one fills one
			t.Fatalf("%d connections still wait after %d requests", len(waiting), calls)
		}
		var lanes []deliveries.LaneCompletion
		for _, l := range q.leaseLanes(tq) {
			delete(waiting, l.ConnectionID)
			lanes = append(lanes, deliveries.LaneCompletion{Lease: l, Outcomes: delivered(l)})
		}
		if _, err := q.relay.Complete(context.Background(), completion(lanes...)); err != nil {
			t.Fatal(err)
		}
	}
	q.compact()
	q.recount()
}

// TestSentBeforeGoesAlone: lanes whose entries were sent in a request that failed are leased one by one, so
// that none of them fails again with the entry that is to blame.
func TestSentBeforeGoesAlone(t *testing.T) {
	t.Parallel()
	for _, unconfirmed := range []bool{false, true} {
		q := newQueue(t)
		const lanes = 12
		for c := range lanes {
			q.enqueueOnly(interaction(connection(c), "dec_1", "sig_1"))
		}
		q.compact()
		var failed []deliveries.LaneCompletion
		for _, l := range q.leaseLanes(lanesQuery()) {
			failed = append(failed, deliveries.LaneCompletion{Lease: l,
				Outcomes: all(l, deliveries.Outcome{Status: deliveries.Failed, Unconfirmed: unconfirmed})})
		}
		if len(failed) != lanes {
			t.Fatalf("%d lanes were leased together", len(failed))
		}
		if _, err := q.relay.Complete(context.Background(), completion(failed...)); err != nil {
			t.Fatal(err)
		}
		q.recount()
		q.enqueue(interaction("con_new", "dec_1", "sig_1"))
		q.due()
		alone := 0
		for range lanes + 1 {
			leases := q.leaseLanes(lanesQuery())
			if len(leases) != 1 {
				t.Fatalf("%d lanes together", len(leases))
			}
			if leases[0].Entries[0].Attempts == 1 && leases[0].Entries[0].Unconfirmed == unconfirmed {
				alone++
			}
			q.complete(leases[0], delivered(leases[0])...)
		}
		if alone != lanes {
			t.Errorf("%d lanes went alone", alone)
		}
		q.recount()
	}
}

// TestLostAmongOthers: of lanes that are completed together, those that other workers leased since stay as
// they are, and the rest is completed.
func TestLostAmongOthers(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	for c := range 6 {
		q.enqueueOnly(interaction(connection(c), "dec_1", "sig_1"))
	}
	q.compact()
	first := q.leaseLanes(lanesQuery())
	q.admin(`UPDATE delivery.lanes SET leased_until = '-infinity' WHERE connection_id IN ($1, $2)`, connection(1),
		connection(4))
	q.mustLease()
	q.mustLease()
	var lanes []deliveries.LaneCompletion
	for _, l := range first {
		lanes = append(lanes, deliveries.LaneCompletion{Lease: l, Outcomes: delivered(l)})
	}
	done, err := q.relay.Complete(context.Background(), completion(lanes...))
	if err != nil || done.Delivered != 4 || len(done.Lost) != 2 {
		t.Fatalf("%+v, %v", done, err)
	}
	for _, l := range done.Lost {
		if l.ConnectionID != connection(1) && l.ConnectionID != connection(4) {
			t.Errorf("%s was lost", l.ConnectionID)
		}
	}
	q.recount()
	if v := q.view(); v.Total.Pending != 2 || v.Total.UnconfirmedCreations != 2 {
		t.Errorf("%+v", v.Total)
	}
}

// TestWaitingLanesDoNotFillARequest: lanes whose entries all await their Decisions are put off, and what is
// ready goes.
func TestWaitingLanesDoNotFillARequest(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	dec, _ := decision(t)
	for c := range 30 {
		e := awaiting(dec, "sig_1")
		e.ConnectionID = connection(c)
		q.enqueueOnly(e)
	}
	q.enqueueOnly(interaction("con_ready", "dec_1", "sig_1"))
	q.compact()
	if l := q.leaseLanes(lanesQuery()); len(l) != 1 || l[0].ConnectionID != "con_ready" {
		t.Errorf("%d lanes", len(l))
	}
	if n := scan[int](q, `SELECT count(*) FROM delivery.lanes WHERE ready AND not_before > served_at`); n != 30 {
		t.Errorf("%d lanes are put off", n)
	}
}

// TestRowsMoveUnderALease: a completion deletes what was delivered, also when a redaction has moved some of
// the rows since the lease.
func TestRowsMoveUnderALease(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	for c := range 3 {
		for _, id := range []string{"sig_1", "sig_2"} {
			q.enqueueOnly(interaction(connection(c), "dec_1", id))
		}
	}
	q.compact()
	leases := q.leaseLanes(lanesQuery())
	q.admin(`UPDATE delivery.entries SET body = '{"redacted":1}' WHERE id = 'sig_2'`)
	var lanes []deliveries.LaneCompletion
	for _, l := range leases {
		lanes = append(lanes, deliveries.LaneCompletion{Lease: l, Outcomes: delivered(l)})
	}
	done, err := q.relay.Complete(context.Background(), completion(lanes...))
	if err != nil || done.Delivered != 6 {
		t.Fatalf("%+v, %v", done, err)
	}
	if n := scan[int](q, `SELECT count(*) FROM delivery.entries`); n != 0 {
		t.Errorf("%d entries are left", n)
	}
	q.recount()
}

// TestALaneIsCompletedWithItsRetryLane: a failure that moves to the retry lane wakes that lane in the same
// transaction that completes it.
func TestALaneIsCompletedWithItsRetryLane(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	isolate := deliveries.Outcome{Status: deliveries.Failed, Reason: "x", Isolate: true}
	q.enqueue(interaction(shop, "dec_1", "sig_1"))
	l := q.mustLease()
	q.complete(l, all(l, isolate)...)
	q.enqueue(interaction(shop, "dec_1", "sig_2"))
	q.due()
	var lanes []deliveries.LaneCompletion
	for range 2 {
		l := q.mustLease()
		lanes = append(lanes, deliveries.LaneCompletion{Lease: l, Outcomes: all(l, isolate)})
	}
	done, err := q.relay.Complete(context.Background(), completion(lanes...))
	if err != nil || done.Failed != 2 {
		t.Fatalf("%+v, %v", done, err)
	}
	q.recount()
	q.due()
	retry := q.mustLease()
	if len(retry.Entries) != 2 || !retry.Isolated {
		t.Errorf("leased %v, isolated: %v", ids(retry), retry.Isolated)
	}
}

// TestOneLeaseChoosesAtATime: a Lease does not choose lanes while another does, and chooses them when the
// other has leased its own.
func TestOneLeaseChoosesAtATime(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	q.enqueue(interaction(shop, "dec_1", "sig_1"))
	chosen, err := q.relay.Choosing(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	before := q.pools.relay.Stat()
	if l, err := q.relay.Lease(ended, lanesQuery()); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, %v", l, err)
	}
	if after := q.pools.relay.Stat(); after.AcquireCount() != before.AcquireCount() ||
		after.CanceledAcquireCount() != before.CanceledAcquireCount() {
		t.Error("a Lease begins while another chooses lanes")
	}
	chosen()
	if l := q.leaseLanes(lanesQuery()); len(l) != 1 {
		t.Errorf("%d lanes", len(l))
	}
	if l := q.leaseLanes(lanesQuery()); len(l) != 0 {
		t.Errorf("%d lanes after the last", len(l))
	}
}
