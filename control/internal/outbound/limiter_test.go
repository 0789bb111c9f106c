package outbound

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func acquire(t *testing.T, l *RateLimiter, shop string, cost float64) func(Feedback) {
	t.Helper()
	release, err := l.Acquire(t.Context(), shop, cost)
	if err != nil {
		t.Fatalf("%s: %v", shop, err)
	}
	return release
}

func TestLimiterRefills(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := NewRateLimiter(Limits{Capacity: 4, Refill: 2, MaxInFlight: 100}, time.Minute)
		start := time.Now()
		for range 20 { // 4 at once, 16 at two per second
			acquire(t, l, "a", 1)(Feedback{})
		}
		if took := time.Since(start); took < 7900*time.Millisecond || took > 8200*time.Millisecond {
			t.Errorf("20 requests took %v, want 8s", took)
		}
	})
}

func TestLimiterFollowsFeedback(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := NewRateLimiter(Limits{Capacity: 40, Refill: 2, MaxInFlight: 100}, time.Minute)
		acquire(t, l, "a", 1)(Feedback{Known: true, Capacity: 400, Available: 1, Refill: 20})
		acquire(t, l, "a", 1)(Feedback{})
		start := time.Now()
		acquire(t, l, "a", 20)(Feedback{})
		if took := time.Since(start); took < 990*time.Millisecond || took > 1010*time.Millisecond {
			t.Errorf("20 points at 20 a second took %v", took)
		}
		// The provider did not count the requests in flight yet.
		b := acquire(t, l, "a", 0)
		c := acquire(t, l, "a", 0)
		c(Feedback{Known: true, Capacity: 400, Available: 100})
		d := acquire(t, l, "a", 60)
		b(Feedback{Known: true, Capacity: 400, Available: 100})
		start = time.Now()
		acquire(t, l, "a", 60)(Feedback{}) // 40 are left beside the 60 under way
		if took := time.Since(start); took < 900*time.Millisecond {
			t.Errorf("went after %v over the budget", took)
		}
		d(Feedback{})
		start = time.Now()
		acquire(t, l, "a", 10_000)(Feedback{}) // more than there ever is: when all is there
		if took := time.Since(start); took > 25*time.Second {
			t.Errorf("the costliest query waited %v", took)
		}
	})
}

func TestLimiterPauses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := NewRateLimiter(Limits{Capacity: 40, Refill: 2, MaxInFlight: 2}, 2*time.Second)
		acquire(t, l, "a", 1)(Feedback{Pause: time.Minute})
		start := time.Now()
		_, err := l.Acquire(t.Context(), "a", 1)
		var e *Error
		if !errors.As(err, &e) || e.Reason != ShopThrottled || e.RetryAfter != time.Minute ||
			time.Since(start) != 0 {
			t.Errorf("paused: %v after %v", err, time.Since(start))
		}
		acquire(t, l, "b", 1)(Feedback{}) // another shop does not wait
		time.Sleep(59 * time.Second)
		acquire(t, l, "a", 1)(Feedback{}) // waits the last second
		if took := time.Since(start); took != time.Minute {
			t.Errorf("went after %v", took)
		}
	})
}

func TestLimiterBoundsRequestsInFlight(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := NewRateLimiter(Limits{Capacity: 1e9, Refill: 1e9, MaxInFlight: 2}, 2*time.Second)
		var now, most atomic.Int32
		for range 6 {
			go func() {
				release, err := l.Acquire(context.Background(), "a", 1)
				if err != nil {
					t.Error(err)
					return
				}
				most.Store(max(most.Load(), now.Add(1)))
				time.Sleep(500 * time.Millisecond)
				now.Add(-1)
				release(Feedback{})
				release(Feedback{Pause: time.Hour}) // only the first counts
			}()
		}
		synctest.Wait()
		time.Sleep(10 * time.Second)
		if most.Load() != 2 {
			t.Errorf("%d at once", most.Load())
		}
		first, second := acquire(t, l, "a", 1), acquire(t, l, "a", 1)
		start := time.Now()
		_, err := l.Acquire(t.Context(), "a", 1)
		if reason(err) != ShopBusy || time.Since(start) != 2*time.Second {
			t.Errorf("full: %v after %v", err, time.Since(start))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := l.Acquire(ctx, "a", 1); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the caller's deadline: %v", err)
		}
		first(Feedback{})
		second(Feedback{})
	})
}

func TestLimiterRemovesIdleShops(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := NewRateLimiter(Limits{Capacity: 40, Refill: 2, MaxInFlight: 2}, time.Second)
		for _, shop := range []string{"a", "b", "c"} {
			acquire(t, l, shop, 1)(Feedback{})
		}
		held := acquire(t, l, "held", 1)
		time.Sleep(time.Hour)
		acquire(t, l, "d", 1)(Feedback{})
		if len(l.shops) != 2 {
			t.Errorf("%d shops are kept, want the one under way and the last", len(l.shops))
		}
		held(Feedback{})
	})
}

// TestShopThatHangs calls a shop that lets every request run into its timeout: after three of them the calls
// fail at once, and single ones look whether the shop answers again, at growing intervals.
func TestShopThatHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := NewRateLimiter(Limits{Capacity: 1e9, Refill: 1e9, MaxInFlight: 100}, 5*time.Second)
		for range maxUnanswered {
			acquire(t, l, "a", 1)(Feedback{Outcome: NoAnswer})
		}
		start, sent := time.Now(), 0
		for time.Since(start) < time.Hour {
			release, err := l.Acquire(t.Context(), "a", 1)
			if err == nil {
				sent++
				if _, err := l.Acquire(t.Context(), "a", 1); reason(err) != ShopHangs {
					t.Fatalf("beside the call that looks: %v", err)
				}
				time.Sleep(10 * time.Second)
				release(Feedback{Outcome: NoAnswer})
				continue
			}
			var e *Error
			if !errors.As(err, &e) || e.Reason != ShopHangs ||
				e.RetryAfter <= 0 || e.RetryAfter > maxHangPause {
				t.Fatalf("%v", err)
			}
			acquire(t, l, "b", 1)(Feedback{Outcome: Answered}) // another shop
			time.Sleep(e.RetryAfter)
		}
		if sent < 10 || sent > 25 {
			t.Errorf("%d requests in an hour", sent)
		}
		time.Sleep(maxHangPause)
		acquire(t, l, "a", 1)(Feedback{}) // not sent: says nothing
		acquire(t, l, "a", 1)(Feedback{Outcome: Answered})
		for range 5 {
			acquire(t, l, "a", 1)
		}
	})
}
