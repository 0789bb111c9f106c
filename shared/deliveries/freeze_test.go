package deliveries_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"storefront.internal/shared/deliveries"
	"storefront.internal/shared/ident/decisionid"
)

// decision mints an id as an edge does.
func decision(t *testing.T) (id string, minted time.Time) {
	t.Helper()
	ring, err := decisionid.ParseKeyring("k1:" + "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=")
	if err != nil {
		t.Fatal(err)
	}
	id = string(ring.Mint(shop, time.Now()))
	minted, ok := decisionid.MintedAt(id)
	if !ok {
		t.Fatal("a minted id has no instant")
	}
	return id, minted
}

func (q *queue) arrive(id string, minted time.Time, engineIDs any) {
	q.t.Helper()
	q.admin(
		`INSERT INTO relay.decisions (connection_id, decision_id, minted_at, store_id, placement, source, served_at, items, engine_ids)
	         VALUES ($1, $2, $3, 'str_1', 'home', 'engine', now(), '[]', $4::text::json)`,
		shop,
		id,
		minted,
		engineIDs,
	)
}

func awaiting(key, id string) deliveries.Entry {
	e := interaction(shop, key, id)
	e.Awaits = key
	return e
}

func TestAwaitedDecisionArrives(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	dec, minted := decision(t)
	q.enqueue(awaiting(dec, "sig_1"))
	if l := q.lease(query()); l != nil {
		t.Fatalf("took %v before its Decision", ids(l))
	}
	q.arrive(dec, minted, `{"run": "r1"}`)
	q.due()
	l := q.mustLease()
	want := fmt.Sprintf(`{"signal_id":"sig_1","decision_id":%q,"engine_ids":{"run": "r1"}}`, dec)
	if got := string(l.Entries[0].Body); got != want {
		t.Fatalf("body %s, want %s", got, want)
	}
	q.admin(`UPDATE relay.decisions SET engine_ids = '{"run": "r2"}'`)
	q.expire()
	if l = q.mustLease(); string(l.Entries[0].Body) != want {
		t.Errorf("the second lease has %s, want the frozen %s", l.Entries[0].Body, want)
	}
}

func TestAwaitedDecisionIsLate(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	dec, minted := decision(t)
	q.enqueue(awaiting(dec, "sig_1"))
	q.admin(`UPDATE delivery.entries SET created_at = now() - interval '31 seconds'`)
	l := q.mustLease()
	want := fmt.Sprintf(`{"signal_id":"sig_1","decision_id":%q}`, dec)
	if got := string(l.Entries[0].Body); got != want {
		t.Fatalf("body %s, want %s", got, want)
	}
	q.arrive(dec, minted, `{"run": "r1"}`)
	q.expire()
	if l = q.mustLease(); string(l.Entries[0].Body) != want {
		t.Errorf("the second lease has %s, want the frozen %s", l.Entries[0].Body, want)
	}
}

func TestAwaitingEntryDoesNotHoldUpOthers(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	dec, _ := decision(t)
	later := interaction(shop, dec, "sig_2")
	q.enqueue(awaiting(dec, "sig_1"), later)
	if l := q.mustLease(); !slices.Equal(ids(l), []string{"sig_2"}) {
		t.Errorf("took %v", ids(l))
	}
}

func TestDecisionWithoutEngineIDs(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	dec, minted := decision(t)
	q.arrive(dec, minted, nil)
	q.enqueue(awaiting(dec, "sig_1"), awaiting("dec_unsigned", "sig_2"))
	l := q.mustLease()
	if want := fmt.Sprintf(`{"signal_id":"sig_1","decision_id":%q}`, dec); string(l.Entries[0].Body) != want {
		t.Errorf("body %s, want %s", l.Entries[0].Body, want)
	}
}

// TestAnAwaitingEntryStaysTheOldest: an entry that is skipped stays the lane's first, however many are
// delivered from behind it.
func TestAnAwaitingEntryStaysTheOldest(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	dec, _ := decision(t)
	q.enqueue(awaiting(dec, "sig_1"))
	first := q.view().Total.OldestPendingAt
	second := interaction(shop, dec, "sig_2") // of the same lane
	for range 3 {
		q.enqueue(second, second)
		l := q.mustLease()
		q.complete(l, delivered(l)[:1]...)
		q.recount()
		if at := q.view().Total.OldestPendingAt; !at.Equal(first) {
			t.Fatalf("the oldest is of %v, want %v, of who awaits", at, first)
		}
		q.due()
	}
}
