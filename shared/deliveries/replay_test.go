package deliveries_test

import (
	"context"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"storefront.internal/shared/deliveries"
	"storefront.internal/shared/testkit"
)

// massDeath is more dead letters of one connection than a single transaction of a replay moves.
const massDeath = 30_000

// dieInMass inserts dead letters of one connection in the order of their ids.
func (q *queue) dieInMass(n int) {
	q.t.Helper()
	q.admin(`INSERT INTO delivery.dead (connection_id, kind, id, lane, body, created_at, died_at, attempts,
			reason)
		SELECT $1, 1, 'sig_' || lpad(n::text, 6, '0'), n % 8, '{}', now(),
			now() - (30000 - n) * interval '1 ms', 1, 'http_422'
		FROM generate_series(1, $2::integer) AS n`, shop, n)
	q.admin(`INSERT INTO delivery.dead_minutes
		SELECT date_trunc('minute', died_at), connection_id, kind, count(*)
		FROM delivery.dead GROUP BY 1, 2, 3`)
	q.admin(`ANALYZE delivery.dead`)
	q.recount()
}

// limited is the queue as control sees it, with a limit of each statement and of each wait for a lock.
func (q *queue) limited(lockTimeout string) *deliveries.Store {
	q.t.Helper()
	u, err := url.Parse(q.pools.control.Config().ConnString())
	if err != nil {
		q.t.Fatal(err)
	}
	params := u.Query()
	params.Set("statement_timeout", "10000")
	params.Set("lock_timeout", lockTimeout)
	u.RawQuery = params.Encode()
	return deliveries.NewStore(testkit.Pool(q.t, u.String()))
}

// replayedAll checks that each dead letter is back exactly once.
func (q *queue) replayedAll(n int) {
	q.t.Helper()
	q.recount()
	entries, ids := scan[int](q, `SELECT count(*) FROM delivery.entries`),
		scan[int](q, `SELECT count(DISTINCT id) FROM delivery.entries`)
	dead := scan[int](q, `SELECT count(*) FROM delivery.dead`)
	if entries != n || ids != n || dead != 0 {
		q.t.Errorf("%d entries with %d ids, %d still dead; want %d once each", entries, ids, dead, n)
	}
	if v := q.view(); v.Total.Pending != int64(n) || v.Total.DeadLast24h != 0 {
		q.t.Errorf("the view says %+v", v.Total)
	}
}

func TestAMassReplayIsManyTransactions(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	q.dieInMass(massDeath)
	n, err := q.limited("5000").ReplayDead(context.Background(), deliveries.ReplayQuery{ConnectionID: shop})
	if err != nil || n != massDeath {
		t.Fatalf("replayed %d, %v", n, err)
	}
	q.replayedAll(massDeath)
	largest := scan[int](q, `SELECT max(n)
		FROM (SELECT count(*) AS n FROM delivery.entries GROUP BY xmin::text) AS t`)
	if largest > 5000 {
		t.Errorf("a transaction moved %d", largest)
	}
	if out := scan[int](q, `SELECT count(*) FROM (SELECT id, lag(id) OVER (ORDER BY seq) AS before
		FROM delivery.entries) AS e WHERE id < before`); out != 0 {
		t.Errorf("%d are behind a later one", out)
	}
}

// TestACutOffReplayGoesOn: a lock in the middle ends the replay; what was moved stays so, and the same call
// moves the rest.
func TestACutOffReplayGoesOn(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	q := newQueue(t)
	q.dieInMass(massDeath)
	tx, err := q.pools.admin.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(ctx) }()
	if _, err := tx.Exec(ctx, `SELECT FROM delivery.dead WHERE id = 'sig_009999' FOR UPDATE`); err != nil {
		t.Fatal(err)
	}
	control := q.limited("50")
	first, err := control.ReplayDead(ctx, deliveries.ReplayQuery{ConnectionID: shop})
	if err == nil || first == 0 || first > 9998 {
		t.Fatalf("replayed %d in spite of the lock, %v", first, err)
	}
	if pending := q.view().Total.Pending; pending != int64(first) {
		t.Errorf("%d are back, the replay says %d", pending, first)
	}
	if err := tx.Rollback(ctx); err != nil {
		t.Fatal(err)
	}
	rest, err := q.control.ReplayDead(ctx, deliveries.ReplayQuery{ConnectionID: shop})
	if err != nil || first+rest != massDeath {
		t.Errorf("replayed %d and then %d, %v", first, rest, err)
	}
	q.replayedAll(massDeath)
}

func TestTwoReplaysAtOnce(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	q.dieInMass(massDeath)
	var moved [2]int
	var wg sync.WaitGroup
	for i := range moved {
		wg.Go(func() {
			var err error
			moved[i], err = q.control.ReplayDead(context.Background(),
				deliveries.ReplayQuery{ConnectionID: shop})
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if moved[0]+moved[1] != massDeath {
		t.Errorf("replayed %d and %d", moved[0], moved[1])
	}
	q.replayedAll(massDeath)
}

// TestAReplayEnds although the engine rejects again what is replayed.
func TestAReplayEnds(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	q.dieInMass(deliveries.ReplayChunk * 2)
	q.admin(`UPDATE delivery.dead SET died_at = now() + interval '1 hour' WHERE id > 'sig_003000'`)
	n, err := q.control.ReplayDead(context.Background(), deliveries.ReplayQuery{ConnectionID: shop})
	if err != nil || n != 3000 {
		t.Errorf("replayed %d, %v; want only those that were dead when it began", n, err)
	}
}

func TestReplayByIDsUsesAnIndex(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	q.dieInMass(massDeath)
	plan := explain(q, deliveries.PickByIDs, pgx.QueryExecModeExec, pgx.NamedArgs{
		"kind": 1, "connection": "", "ids": []string{"sig_000001", "sig_020000"}, "began": time.Now(),
		"last_at": "-infinity", "last_connection": "", "last_id": "", "chunk": deliveries.ReplayChunk,
	})
	if !strings.Contains(plan, "dead_by_id") {
		t.Errorf("the plan is\n%s", plan)
	}
	n, err := q.control.ReplayDead(t.Context(),
		deliveries.ReplayQuery{IDs: []string{"sig_000001", "sig_020000", "sig_999999"}})
	if err != nil || n != 2 {
		t.Errorf("replayed %d, %v", n, err)
	}
}
