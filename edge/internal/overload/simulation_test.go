package overload

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

const simulatedSlots = 32

// semaphore is what the Limiter is compared with: two queues (critical and other), served in this order, and
// one bound for both of them.
type semaphore struct {
	free   chan struct{}
	mu     sync.Mutex
	queues [2][]chan struct{}
}

func (s *semaphore) acquire(critical bool, maxWait time.Duration) bool {
	queue := &s.queues[0]
	if critical {
		queue = &s.queues[1]
	}
	select {
	case <-s.free:
		return true
	default:
	}
	granted := make(chan struct{})
	s.mu.Lock()
	if len(s.queues[0])+len(s.queues[1]) >= simulatedSlots {
		s.mu.Unlock()
		return false
	}
	*queue = append(*queue, granted)
	s.mu.Unlock()
	select {
	case <-granted:
		return true
	case <-time.After(maxWait):
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, waiter := range *queue {
		if waiter == granted {
			*queue = append((*queue)[:i:i], (*queue)[i+1:]...)
			return false
		}
	}
	return true
}

func (s *semaphore) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := len(s.queues) - 1; i >= 0; i-- {
		if queue := s.queues[i]; len(queue) > 0 {
			close(queue[0])
			s.queues[i] = queue[1:]
			return
		}
	}
	s.free <- struct{}{}
}

// simulate offers 20,000 requests at a multiple of the capacity: 60 % impressions, 35 % normal, 5 % critical.
// It returns the percentage of each priority that got a permit.
func simulate(overload float64, work time.Duration,
	acquire func(Priority) (release func(), ok bool)) (served [priorities]float64) {
	random := rand.New(rand.NewPCG(1, 2))
	rate := overload * simulatedSlots / work.Seconds()
	var offered, granted [priorities]float64
	var mu sync.Mutex
	var all sync.WaitGroup
	for range 20_000 {
		time.Sleep(time.Duration(random.ExpFloat64() / rate * float64(time.Second)))
		priority := Sheddable
		if draw := random.Float64(); draw >= .95 {
			priority = Critical
		} else if draw >= .6 {
			priority = Normal
		}
		takes := time.Duration((.5 + random.Float64()) * float64(work))
		all.Go(func() {
			release, ok := acquire(priority)
			mu.Lock()
			offered[priority]++
			if ok {
				granted[priority]++
			}
			mu.Unlock()
			if ok {
				time.Sleep(takes)
				release()
			}
		})
	}
	all.Wait()
	for p := range served {
		served[p] = 100 * granted[p] / offered[p]
	}
	return served
}

// TestSimulatedOverload shows what the priorities buy against a plain semaphore that serves critical requests
// first. Eviction of waiting requests and refusal by a predicted wait were compared in the same simulation
// and left out: no priority got more of its requests served with them.
func TestSimulatedOverload(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name         string
		overload     float64
		work         time.Duration
		critical     float64 // least percentage served
		normal       float64
		plainAtMost  float64 // most that the semaphore serves of normal requests
		criticalMost float64 // and of critical ones
	}{
		{"1.2 times the capacity", 1.2, 20 * time.Millisecond, 99.9, 99.9, 90, 90},
		{"twice", 2, 20 * time.Millisecond, 99.9, 98, 55, 60},
		{"four times", 4, 20 * time.Millisecond, 99.9, 50, 30, 35},
		{"twice, slow stores", 2, 100 * time.Millisecond, 99.9, 98, 55, 95},
	} {
		synctest.Test(t, func(t *testing.T) {
			limiter := New(Config{MaxInFlight: simulatedSlots})
			got := simulate(c.overload, c.work, func(p Priority) (func(), bool) {
				permit, _, ok := limiter.Acquire(context.Background(), 0, func() Priority { return p })
				return func() { limiter.Release(permit) }, ok
			})
			plain := &semaphore{free: make(chan struct{}, simulatedSlots)}
			for range simulatedSlots {
				plain.free <- struct{}{}
			}
			other := simulate(c.overload, c.work, func(p Priority) (func(), bool) {
				return plain.release, plain.acquire(p == Critical, 50*time.Millisecond)
			})
			t.Logf("%s: served of impressions, normal, critical: %.1f %%, semaphore %.1f %%", c.name, got,
				other)
			if got[Critical] < c.critical || got[Normal] < c.normal {
				t.Errorf("%s: %.1f, want at least %.1f of critical and %.1f of normal requests", c.name, got,
					c.critical, c.normal)
			}
			if other[Normal] > c.plainAtMost || other[Critical] > c.criticalMost {
				t.Errorf("%s: a semaphore serves %.1f: the priorities buy nothing", c.name, other)
			}
		})
	}
}
