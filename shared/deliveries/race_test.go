package deliveries_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"storefront.internal/shared/deliveries"
	"storefront.internal/shared/ident"
)

// TestNoLostWakeUp: writers, compactors and workers run at once. Every sleeping lane is woken; in the end
// every entry was delivered once per lease, the queue is empty, and the counts are zero.
func TestNoLostWakeUp(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	const writers, rounds, per = 2, 60, 5
	ctx, cancel := context.WithTimeout(context.Background(), 90*time.Second)
	defer cancel()
	var enqueued, completed atomic.Int64
	var writing, working sync.WaitGroup
	for n := range writers {
		writing.Go(func() {
			for r := range rounds {
				var entries []deliveries.Entry
				for i := range per {
					c := ident.ConnectionID(fmt.Sprint("con_", rand.IntN(3)))
					entries = append(
						entries,
						interaction(
							c,
							fmt.Sprint("dec_", rand.IntN(20)),
							fmt.Sprintf("sig_%d_%d_%d", n, r, i),
						),
					)
				}
				err := pgx.BeginFunc(
					ctx,
					q.pools.admin,
					func(tx pgx.Tx) error { return deliveries.Enqueue(ctx, tx, entries) },
				)
				if err != nil {
					t.Error(err)
					return
				}
				enqueued.Add(per)
			}
		})
	}
	done := make(chan struct{})
	for n := range 3 {
		working.Go(func() {
			for {
				if n == 0 {
					if _, err := q.relay.Compact(ctx); err != nil {
						t.Error(err)
						return
					}
				}
				tq := query()
				tq.Lanes = 1 + rand.IntN(8)
				leases, err := q.relay.Lease(ctx, tq)
				if err != nil {
					t.Error(err)
					return
				}
				if len(leases) == 0 {
					select {
					case <-done:
						if completed.Load() == enqueued.Load() {
							return
						}
					case <-ctx.Done():
						t.Error("an entry waits and no lane is woken")
						return
					default:
					}
					continue
				}
				var lanes []deliveries.LaneCompletion
				for _, l := range leases {
					lanes = append(lanes, deliveries.LaneCompletion{Lease: l, Outcomes: delivered(l)})
				}
				s, err := q.relay.Complete(ctx, completion(lanes...))
				if err != nil || len(s.Lost) > 0 {
					t.Error(s.Lost, err)
					return
				}
				completed.Add(int64(s.Delivered))
			}
		})
	}
	writing.Wait()
	close(done)
	working.Wait()
	q.compact()
	q.recount()
	if completed.Load() != writers*rounds*per {
		t.Errorf("completed %d of %d", completed.Load(), writers*rounds*per)
	}
	if n := scan[int](q, `SELECT count(*) FROM delivery.counts WHERE pending <> 0 OR unconfirmed <> 0`); n != 0 {
		t.Errorf("%d counts are not zero", n)
	}
}

// TestOneCompletionPerFence: of two that hold the same lane over an expiry, exactly the later one completes.
func TestOneCompletionPerFence(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	for i := range 30 {
		q.enqueue(interaction(shop, "dec_1", fmt.Sprintf("sig_%d", i)))
		first := q.mustLease()
		q.expire()
		second := q.mustLease()
		var wg sync.WaitGroup
		var won, lost atomic.Int32
		for _, l := range []*deliveries.Lease{first, second} {
			wg.Go(func() {
				switch _, err := completeOne(context.Background(), q.relay, l, delivered(l)...); {
				case err == nil && l == second:
					won.Add(1)
				case errors.Is(err, errLeaseLost) && l == first:
					lost.Add(1)
				default:
					t.Errorf("fence %d of %d: %v", l.Fence, second.Fence, err)
				}
			})
		}
		wg.Wait()
		if won.Load() != 1 || lost.Load() != 1 {
			t.Fatal("not exactly one completed")
		}
		q.recount()
	}
}

// TestLaneHeadsAreTrue: lane heads are refreshed while lanes are leased and woken. Whenever all pause, a
// lane's oldest_at is that of its first entry.
func TestLaneHeadsAreTrue(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	const rounds, per = 300, 4
	var step sync.RWMutex // held for reading during a step
	var busy sync.WaitGroup
	var written, finished atomic.Bool
	loop := func(do func() error) {
		busy.Go(func() {
			for !finished.Load() {
				step.RLock()
				err := do()
				step.RUnlock()
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	ctx := context.Background()
	for range 2 {
		loop(func() error {
			tq := query()
			tq.Limit, tq.Lanes = 1+rand.IntN(2*per), 1+rand.IntN(3)
			leases, err := q.relay.Lease(ctx, tq)
			if err != nil {
				return err
			}
			var lanes []deliveries.LaneCompletion
			for _, l := range leases {
				outcomes := delivered(l)[rand.IntN(2)*rand.IntN(len(l.Entries)):]
				if !l.Isolated && rand.IntN(4) == 0 {
					outcomes[0].Status, outcomes[0].Isolate = deliveries.Failed, true
				}
				lanes = append(lanes, deliveries.LaneCompletion{Lease: l, Outcomes: outcomes})
			}
			_, err = q.relay.Complete(ctx, completion(lanes...))
			return err
		})
	}
	loop(func() error { _, err := q.relay.Compact(ctx); return err })
	loop(func() error { _, err := q.relay.RefreshLaneHeads(ctx, 0); return err })
	busy.Go(func() {
		defer written.Store(true)
		for r := range rounds {
			var entries []deliveries.Entry
			for i := range per {
				entries = append(
					entries,
					interaction(shop, fmt.Sprint("dec_", rand.IntN(3)), fmt.Sprintf("sig_%d_%d", r, i)),
				)
			}
			step.RLock()
			err := pgx.BeginFunc(
				ctx,
				q.pools.relay,
				func(tx pgx.Tx) error { return deliveries.Enqueue(ctx, tx, entries) },
			)
			step.RUnlock()
			if err != nil {
				t.Error(err)
				return
			}
		}
	})
	withHead := 0
	for !written.Load() && !t.Failed() {
		step.Lock()
		withHead += scan[int](q, `SELECT count(*) FROM delivery.lanes WHERE oldest_at > '-infinity'`)
		if n := scan[int](q, `
			SELECT count(*) FROM delivery.lanes l WHERE l.ready AND l.oldest_at > '-infinity' AND l.oldest_at IS DISTINCT FROM (
				SELECT e.created_at FROM delivery.entries e
				WHERE e.connection_id = l.connection_id AND e.kind = l.kind AND e.lane = l.lane ORDER BY e.seq LIMIT 1)`); n != 0 {
			t.Errorf("%d lanes name another time than that of their first entry", n)
		}
		q.recount()
		step.Unlock()
	}
	finished.Store(true)
	busy.Wait()
	if withHead == 0 {
		t.Error("no lane ever had a head")
	}
}
