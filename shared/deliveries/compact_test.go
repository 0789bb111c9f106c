package deliveries_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"storefront.internal/shared/deliveries"
)

// TestCompactionPassesOverLockedLanes: while a redaction holds the lanes of one connection, the others wake
// up, however many deltas of the one are in front of theirs.
func TestCompactionPassesOverLockedLanes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		deltas int
	}{{"few deltas", 1}, {"more deltas than one call folds", 10100}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			q := newQueue(t)
			q.enqueue(interaction(shop, "dec_1", "sig_1"))
			q.sleep()
			q.enqueueOnly(interaction(shop, "dec_1", "sig_2"))
			if _, err := q.pools.admin.Exec(t.Context(), `
INSERT INTO delivery.deltas (connection_id, kind, pending, lanes)
SELECT connection_id, kind, 0, lanes FROM delivery.deltas, generate_series(2, $1)`, c.deltas); err != nil {
				t.Fatal(err)
			}
			redaction := q.lockLanes()
			q.enqueueOnly(interaction(other, "dec_2", "sig_3"))
			done := q.compactWithin(20 * time.Second)
			if done.Deltas != 1 || done.Woken != 1 {
				t.Errorf("%+v, want the other connection's delta", done)
			}
			if lease := q.lease(query()); lease == nil || lease.ConnectionID != other {
				t.Errorf("leased %+v", lease)
			}
			if err := redaction.Rollback(t.Context()); err != nil {
				t.Fatal(err)
			}
			for q.compactWithin(20 * time.Second).More() {
			}
			if lease := q.lease(query()); lease == nil || lease.ConnectionID != shop {
				t.Errorf("leased %+v", lease)
			}
			if n := scan[int](q, `SELECT count(*) FROM delivery.deltas`); n != 0 {
				t.Errorf("%d deltas are left", n)
			}
			if n := scan[int](q, `SELECT sum(pending) FROM delivery.counts`); n != 3 {
				t.Errorf("%d are pending, want 3", n)
			}
		})
	}
}

// sleep puts all lanes to sleep, as a completion does with those that it emptied.
func (q *queue) sleep() {
	q.t.Helper()
	if _, err := q.pools.admin.Exec(q.t.Context(), `UPDATE delivery.lanes SET ready = false`); err != nil {
		q.t.Fatal(err)
	}
}

// lockLanes locks all lanes that exist.
func (q *queue) lockLanes() pgx.Tx {
	q.t.Helper()
	tx, err := q.pools.admin.Begin(q.t.Context())
	if err != nil {
		q.t.Fatal(err)
	}
	q.t.Cleanup(func() { _ = tx.Rollback(context.Background()) })
	if _, err := tx.Exec(q.t.Context(), `SELECT FROM delivery.lanes FOR NO KEY UPDATE`); err != nil {
		q.t.Fatal(err)
	}
	return tx
}

func (q *queue) compactWithin(limit time.Duration) deliveries.Compacted {
	q.t.Helper()
	ctx, cancel := context.WithTimeout(q.t.Context(), limit)
	defer cancel()
	done, err := q.relay.Compact(ctx)
	if err != nil {
		q.t.Fatal(err)
	}
	return done
}
