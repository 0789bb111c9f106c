package outbound

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func enter(t *testing.T, g *Gate, store string, cost float64) func(Report) {
	t.Helper()
	leave, err := g.Enter(t.Context(), store, cost)
	if err != nil {
		t.Fatalf("%s: %v", store, err)
	}
	return leave
}

func TestGateRefills(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := NewGate(Budget{Capacity: 4, Refill: 2, Flights: 100}, time.Minute)
		start := time.Now()
		for range 20 { // 4 at once, 16 at two per second
			enter(t, g, "a", 1)(Report{})
		}
		if took := time.Since(start); took < 7900*time.Millisecond || took > 8200*time.Millisecond {
			t.Errorf("20 requests took %v, want 8s", took)
		}
	})
}

func TestGateBelievesTheProvider(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := NewGate(Budget{Capacity: 40, Refill: 2, Flights: 100}, time.Minute)
		enter(t, g, "a", 1)(Report{Known: true, Capacity: 400, Available: 1, Refill: 20})
		enter(t, g, "a", 1)(Report{})
		start := time.Now()
		enter(t, g, "a", 20)(Report{})
		if took := time.Since(start); took < 990*time.Millisecond || took > 1010*time.Millisecond {
			t.Errorf("20 points at 20 a second took %v", took)
		}
		// What is under way is not yet in the provider's word.
		b := enter(t, g, "a", 0)
		c := enter(t, g, "a", 0)
		c(Report{Known: true, Capacity: 400, Available: 100})
		d := enter(t, g, "a", 60)
		b(Report{Known: true, Capacity: 400, Available: 100})
		start = time.Now()
		enter(t, g, "a", 60)(Report{}) // 40 are left beside the 60 under way
		if took := time.Since(start); took < 900*time.Millisecond {
			t.Errorf("went after %v over the budget", took)
		}
		d(Report{})
		start = time.Now()
		enter(t, g, "a", 10_000)(Report{}) // more than there ever is: when all is there
		if took := time.Since(start); took > 25*time.Second {
			t.Errorf("the costliest query waited %v", took)
		}
	})
}

func TestGatePauses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := NewGate(Budget{Capacity: 40, Refill: 2, Flights: 2}, 2*time.Second)
		enter(t, g, "a", 1)(Report{Pause: time.Minute})
		start := time.Now()
		_, err := g.Enter(t.Context(), "a", 1)
		var e *Error
		if !errors.As(err, &e) || e.Reason != Busy || e.RetryAfter != time.Minute || time.Since(start) != 0 {
			t.Errorf("paused: %v after %v", err, time.Since(start))
		}
		enter(t, g, "b", 1)(Report{}) // another store is not held up
		time.Sleep(59 * time.Second)
		enter(t, g, "a", 1)(Report{}) // waits the last second
		if took := time.Since(start); took != time.Minute {
			t.Errorf("went after %v", took)
		}
	})
}

func TestGateFlights(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := NewGate(Budget{Capacity: 1e9, Refill: 1e9, Flights: 2}, 2*time.Second)
		var now, most atomic.Int32
		for range 6 {
			go func() {
				leave, err := g.Enter(context.Background(), "a", 1)
				if err != nil {
					t.Error(err)
					return
				}
				most.Store(max(most.Load(), now.Add(1)))
				time.Sleep(500 * time.Millisecond)
				now.Add(-1)
				leave(Report{})
				leave(Report{Pause: time.Hour}) // only the first counts
			}()
		}
		synctest.Wait()
		time.Sleep(10 * time.Second)
		if most.Load() != 2 {
			t.Errorf("%d at once", most.Load())
		}
		first, second := enter(t, g, "a", 1), enter(t, g, "a", 1)
		start := time.Now()
		_, err := g.Enter(t.Context(), "a", 1)
		if reason(err) != ReadyTooLate || time.Since(start) != 2*time.Second {
			t.Errorf("full: %v after %v", err, time.Since(start))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := g.Enter(ctx, "a", 1); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the caller's deadline: %v", err)
		}
		first(Report{})
		second(Report{})
	})
}

func TestGateForgets(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := NewGate(Budget{Capacity: 40, Refill: 2, Flights: 2}, time.Second)
		for _, store := range []string{"a", "b", "c"} {
			enter(t, g, store, 1)(Report{})
		}
		held := enter(t, g, "held", 1)
		time.Sleep(time.Hour)
		enter(t, g, "d", 1)(Report{})
		if len(g.stores) != 2 {
			t.Errorf("%d stores are remembered, want the one under way and the last", len(g.stores))
		}
		held(Report{})
	})
}
