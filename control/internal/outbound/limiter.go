package outbound

import (
	"context"
	"sync"
	"time"
)

// Limits are those of a shop while its provider's responses do not tell others. Costs are in the provider's
// unit: a request, or the points of a query.
type Limits struct {
	Capacity    float64 // the most at once
	Refill      float64 // per second
	MaxInFlight int     // requests at once
}

// Feedback is what a response says about the shop's limits.
type Feedback struct {
	Known     bool // Capacity, Available and Refill are set
	Capacity  float64
	Available float64
	Refill    float64       // 0: unchanged
	Pause     time.Duration // no request for so long
}

// RateLimiter keeps each shop within its limits. A shop that would have to wait too long fails at once, so
// that it does not occupy a worker that other shops need.
//
// It is not built on golang.org/x/time/rate, which cannot be set to the tokens that a provider reports.
type RateLimiter struct {
	limits  Limits
	maxWait time.Duration

	mu      sync.Mutex
	shops   map[string]*bucket
	sweptAt time.Time
}

type bucket struct {
	Limits
	available   float64
	at          time.Time // of available
	pausedUntil time.Time // no request before
	inFlight    int
	pendingCost float64       // the cost of the requests in flight
	released    chan struct{} // closed, and replaced, when a request ends
}

// NewRateLimiter returns a limiter whose callers wait at most maxWait.
func NewRateLimiter(b Limits, maxWait time.Duration) *RateLimiter {
	return &RateLimiter{limits: b, maxWait: maxWait, shops: make(map[string]*bucket)}
}

// Acquire waits until a request of a shop may be sent. The caller calls release once, with what the response
// said. An *Error with RetryAfter says that the wait would be too long.
func (l *RateLimiter) Acquire(ctx context.Context, shop string, cost float64) (func(Feedback), error) {
	deadline := time.Now().Add(l.maxWait)
	for {
		b, wait, released := l.tryAcquire(shop, cost)
		if b != nil {
			var once sync.Once
			return func(r Feedback) { once.Do(func() { l.release(b, cost, r) }) }, nil
		}
		now := time.Now()
		if released == nil && now.Add(wait).After(deadline) {
			return nil, &Error{Reason: ShopThrottled, RetryAfter: wait}
		}
		if released != nil {
			if wait = deadline.Sub(now); wait <= 0 {
				return nil, &Error{Reason: ShopBusy, RetryAfter: l.maxWait}
			}
		}
		select {
		case <-time.After(wait):
		case <-released:
		case <-ctx.Done():
			return nil, failure(ctx, ctx.Err())
		}
	}
}

// tryAcquire returns the bucket when the request may be sent; else how long to wait, or the channel that is
// closed when a request of the shop ends.
func (l *RateLimiter) tryAcquire(shop string, cost float64) (*bucket, time.Duration, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	l.sweep(now)
	b := l.shops[shop]
	if b == nil {
		b = &bucket{Limits: l.limits, available: l.limits.Capacity, at: now, released: make(chan struct{})}
		l.shops[shop] = b
	}
	b.fill(now)
	need := min(cost, b.Capacity) // a greater cost than Capacity needs a full bucket
	switch {
	case b.pausedUntil.After(now):
		return nil, b.pausedUntil.Sub(now), nil
	case b.inFlight >= b.MaxInFlight:
		return nil, 0, b.released
	case b.available < need:
		wait := time.Duration((need - b.available) / b.Refill * float64(time.Second))
		return nil, max(wait, time.Millisecond), nil
	}
	b.available -= cost
	b.pendingCost += cost
	b.inFlight++
	return b, 0, nil
}

func (b *bucket) fill(now time.Time) {
	b.available = min(b.Capacity, b.available+now.Sub(b.at).Seconds()*b.Refill)
	b.at = now
}

func (l *RateLimiter) release(b *bucket, cost float64, r Feedback) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	b.fill(now)
	b.inFlight--
	b.pendingCost -= cost
	if r.Known && r.Capacity > 0 {
		b.Capacity = r.Capacity
		// The provider did not count the requests in flight.
		b.available = min(r.Capacity, r.Available) - b.pendingCost
		if r.Refill > 0 {
			b.Refill = r.Refill
		}
	}
	if until := now.Add(r.Pause); r.Pause > 0 && until.After(b.pausedUntil) {
		b.pausedUntil = until
	}
	close(b.released)
	b.released = make(chan struct{})
}

// sweep removes shops that are full again.
func (l *RateLimiter) sweep(now time.Time) {
	const interval = time.Minute
	if now.Sub(l.sweptAt) < interval {
		return
	}
	l.sweptAt = now
	for shop, b := range l.shops {
		if b.inFlight == 0 && !b.pausedUntil.After(now) && now.Sub(b.at) > 10*interval {
			delete(l.shops, shop)
		}
	}
}
