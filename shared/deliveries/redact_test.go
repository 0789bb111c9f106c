package deliveries_test

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"storefront.internal/shared/deliveries"
	"storefront.internal/shared/testkit"
)

// secret is what the tests redact.
const secret = "vis_secret"

func personal(key, id string) deliveries.Entry {
	e := interaction(shop, key, id)
	e.Body = fmt.Appendf(nil, `{"signal_id":%q,"visitor":%q}`, id, secret)
	return e
}

func redaction() deliveries.Redaction {
	return deliveries.Redaction{
		ConnectionID: shop,
		Patterns:     [][]byte{[]byte("absent"), []byte(secret)},
		Chunk:        3,
		Body: func(body []byte, _ time.Time) []byte {
			return bytes.ReplaceAll(body, []byte(secret), []byte("redacted"))
		},
	}
}

// redactAll makes the passes as the package says.
func (q *queue) redactAll() []deliveries.ActiveLease {
	q.t.Helper()
	sent, err := q.passes(context.Background())
	if err != nil {
		q.t.Fatal(err)
	}
	return sent
}

func (q *queue) passes(ctx context.Context) ([]deliveries.ActiveLease, error) {
	r := redaction()
	mark, err := q.relay.HighWater(ctx, shop)
	if err != nil {
		return nil, err
	}
	for _, pass := range []func(context.Context, deliveries.Redaction, deliveries.Cursor) (deliveries.Cursor,
		bool, error){
		q.relay.RedactDead, q.relay.RedactWaiting,
	} {
		var at deliveries.Cursor
		for more := true; more; {
			if at, more, err = pass(ctx, r, at); err != nil {
				return nil, err
			}
		}
	}
	return q.relay.RedactRemaining(ctx, r, mark)
}

// nothingHolds fails when the secret is anywhere in the database.
func (q *queue) nothingHolds() {
	q.t.Helper()
	if tables := testkit.TablesContaining(q.t, q.pools.admin, secret); len(tables) > 0 {
		q.t.Errorf("the secret is in %v", tables)
	}
}

func TestBodiesAreRedactedInAllTables(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	var entries []deliveries.Entry
	for i := range 40 {
		entries = append(entries, personal(fmt.Sprint("dec_", i), fmt.Sprint("sig_", i)))
	}
	q.enqueue(entries...)
	l := q.mustLease()
	outcomes := all(l, deliveries.Outcome{Status: deliveries.DeadLettered, Reason: "x"})
	q.complete(l, outcomes...)
	l = q.mustLease() // moves to the retry lane
	q.complete(
		l,
		all(
			l,
			deliveries.Outcome{
				Status:      deliveries.Failed,
				Reason:      "x",
				Isolate:     true,
				Unconfirmed: true,
				RetryIn:     time.Hour,
			},
		)...)

	foreign := personal("dec_1", "sig_other")
	foreign.ConnectionID = other
	q.enqueue(foreign)

	if sent := q.redactAll(); len(sent) > 0 {
		t.Errorf("nothing is being sent, but %v", sent)
	}
	if got := testkit.TablesContaining(t, q.pools.admin, secret); len(got) != 1 ||
		got[0] != "delivery.entries" {
		t.Errorf("but for the other connection's it is in %v", got)
	}
	var n int
	if err := q.pools.admin.QueryRow(t.Context(), `SELECT (SELECT count(*) FROM delivery.entries WHERE body LIKE '%redacted%')
		+ (SELECT count(*) FROM delivery.dead WHERE body LIKE '%redacted%')`).Scan(&n); err != nil ||
		n != len(entries) {
		t.Errorf("%d of %d are there, %v", n, len(entries), err)
	}
}

// TestALeaseKeepsItsBodiesAndIsWaitedFor: the bytes of an active lease cannot be taken back. The next lease
// has other bytes, and the redaction knows the lease that may still send the old ones.
func TestALeaseKeepsItsBodiesAndIsWaitedFor(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	q.enqueue(personal("dec_1", "sig_1"))
	l := q.mustLease()
	sent := q.redactAll()
	if len(sent) != 1 || sent[0].Fence != l.Fence {
		t.Fatalf("being sent: %v", sent)
	}
	sending := func() bool {
		still, err := q.relay.AnyActive(t.Context(), shop, sent)
		if err != nil {
			t.Fatal(err)
		}
		return still
	}
	if !sending() {
		t.Error("the lease is not seen")
	}
	q.complete(
		l,
		all(l, deliveries.Outcome{Status: deliveries.Failed, Reason: "no answer", Unconfirmed: true})...)
	if sending() {
		t.Error("the lease is over")
	}
	again := q.mustLease()
	if len(again.Entries) != 1 || !again.Entries[0].Unconfirmed ||
		bytes.Contains(again.Entries[0].Body, []byte(secret)) {
		t.Errorf("the next lease gives %+v", again.Entries)
	}
	q.nothingHolds()
}

// TestAFreezeDoesNotBringABodyBack: a worker that freezes a body and the redaction run one after the other.
func TestAFreezeDoesNotBringABodyBack(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	const n = 60
	var entries []deliveries.Entry
	for i := range n {
		e := personal(fmt.Sprint("dec_", i), fmt.Sprint("sig_", i))
		e.Awaits = fmt.Sprint("dec_", i)
		entries = append(entries, e)
	}
	q.enqueue(entries...)
	tq := query()
	tq.DecisionWait, tq.Limit = 0, 2
	var workers sync.WaitGroup
	stop := make(chan struct{})
	end := sync.OnceFunc(func() {
		close(stop)
		workers.Wait()
	})
	defer end()
	workers.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			if _, err := q.relay.Lease(context.Background(), tq); err != nil {
				t.Errorf("lease: %v", err)
				return
			}
		}
	})
	q.redactAll()
	end()
	q.nothingHolds()
}

// TestNothingEscapesARedaction: dead letters are replayed and entries dead-lettered, all the time while
// bodies are redacted.
func TestNothingEscapesARedaction(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	var entries []deliveries.Entry
	for i := range 60 {
		entries = append(entries, personal(fmt.Sprint("dec_", i%16), fmt.Sprint("sig_", i)))
	}
	q.enqueue(entries...)
	ctx, cancel := context.WithCancel(context.Background())
	var movers sync.WaitGroup
	defer movers.Wait()
	defer cancel()
	movers.Go(func() {
		for ctx.Err() == nil {
			if _, err := q.control.ReplayDead(context.Background(),
				deliveries.ReplayQuery{ConnectionID: shop}); err != nil {
				t.Errorf("replay: %v", err)
			}
			if _, err := q.relay.Compact(context.Background()); err != nil {
				t.Errorf("compact: %v", err)
			}
		}
	})
	movers.Go(func() {
		for ctx.Err() == nil {
			tq := query()
			tq.Limit = 5
			l, err := leaseOne(context.Background(), q.relay, tq)
			if err != nil || l == nil {
				continue
			}
			if _, err := completeOne(context.Background(), q.relay, l, all(l,
				deliveries.Outcome{Status: deliveries.DeadLettered, Reason: "x"})...); err != nil {
				t.Errorf("complete: %v", err)
			}
		}
	})
	q.redactAll()
	cancel()
	movers.Wait()
	q.nothingHolds()
	var n int
	if err := q.pools.admin.QueryRow(t.Context(), `SELECT (SELECT count(*) FROM delivery.entries) + (SELECT count(*) FROM delivery.dead)`).Scan(&n); err != nil ||
		n != len(entries) {
		t.Errorf("%d of %d are there, %v", n, len(entries), err)
	}
}

// TestARedactionWaitsForAReplay: the rows of a replay are neither dead letters nor visible entries until it
// commits.
func TestARedactionWaitsForAReplay(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	q.enqueue(personal("dec_1", "sig_1"))
	l := q.mustLease()
	q.complete(l, all(l, deliveries.Outcome{Status: deliveries.DeadLettered, Reason: "x"})...)

	tx, err := q.pools.admin.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.Background()) }()
	if _, err := tx.Exec(t.Context(), `WITH gone AS (DELETE FROM delivery.dead RETURNING *)
		INSERT INTO delivery.entries (connection_id, kind, lane, id, body) SELECT connection_id, kind, lane, id, body FROM gone`); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		_, err := q.passes(context.Background())
		done <- err
	}()
	q.untilWaiting()
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	q.nothingHolds()
}

// untilWaiting returns when some session waits for another's row.
func (q *queue) untilWaiting() {
	q.t.Helper()
	deadline := time.Now().Add(time.Minute)
	for waits := false; !waits; time.Sleep(10 * time.Millisecond) {
		row := q.pools.admin.QueryRow(context.Background(), `SELECT EXISTS (SELECT FROM pg_stat_activity
			WHERE datname = current_database() AND wait_event_type = 'Lock')`)
		if err := row.Scan(&waits); err != nil {
			q.t.Fatal(err)
		}
		if time.Now().After(deadline) {
			q.t.Fatal("no session waits")
		}
	}
}

// TestRedactionAndACompletionDoNotDeadlock: a completion holds its lane's row while it creates the retry
// lane. A redaction of all lanes that waits for that row must not hold the retry lane already.
func TestRedactionAndACompletionDoNotDeadlock(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	q.enqueue(personal("dec_1", "sig_1"))
	lane := scan[int16](q, `SELECT lane FROM delivery.lanes`)
	completion, err := q.pools.admin.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = completion.Rollback(context.Background()) }()
	if _, err := completion.Exec(t.Context(), `SELECT FROM delivery.lanes FOR UPDATE`); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		_, err := q.relay.RedactRemaining(context.Background(), redaction(), deliveries.HighWaterMark{})
		done <- err
	}()
	q.untilWaiting()
	if _, err := completion.Exec(t.Context(), `INSERT INTO delivery.lanes AS l (connection_id, kind, lane, ready)
		VALUES ($1, 1, $2, true) ON CONFLICT (connection_id, kind, lane) DO UPDATE SET ready = true`, shop, lane+8); err != nil {
		t.Errorf("the completion: %v", err)
	}
	if err := completion.Commit(t.Context()); err != nil {
		t.Errorf("the completion: %v", err)
	}
	if err := <-done; err != nil {
		t.Errorf("the redaction: %v", err)
	}
}
