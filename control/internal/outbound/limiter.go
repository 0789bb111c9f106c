package outbound

import (
	"context"
	"sync"
	"time"

	"storefront.internal/shared/backoff"
	"storefront.internal/shared/breaker"
)

// Limits are those of a shop while its provider's responses do not tell others. Costs are in the provider's
// unit: a request, or the points of a query.
type Limits struct {
	Capacity    float64 // the most at once
	Refill      float64 // per second
	MaxInFlight int     // requests at once
}

// Feedback is how a request ended, and what its response says about the shop's limits.
type Feedback struct {
	Outcome   Outcome
	Known     bool // Capacity, Available and Refill are set
	Capacity  float64
	Available float64
	Refill    float64       // 0: unchanged
	Pause     time.Duration // no request for so long
}

// Outcome is what became of a request.
type Outcome uint8

// The outcomes.
const (
	Unknown  Outcome = iota // it failed in another way, or was not sent
	Answered                // whatever the answer is
	NoAnswer                // its time ran out
)

// A shop that did not answer so many requests in a row hangs. It gets one request at a time then, after
// pauses that grow.
const (
	maxUnanswered = 3
	minHangPause  = 5 * time.Second
	maxHangPause  = 5 * time.Minute
)

// RateLimiter keeps each shop within its limits. A shop that hangs, or that would have to wait too long,
// fails at once, so that it does not occupy a worker that other shops need.
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
	breaker     *breaker.Breaker
}

func newBucket(l Limits, now time.Time) *bucket {
	return &bucket{Limits: l, available: l.Capacity, at: now, released: make(chan struct{}),
		breaker: breaker.New(breaker.Config{Failures: maxUnanswered,
			Open: backoff.Policy{Min: minHangPause, Max: maxHangPause}})}
}

// NewRateLimiter returns a limiter whose callers wait at most maxWait.
func NewRateLimiter(b Limits, maxWait time.Duration) *RateLimiter {
	return &RateLimiter{limits: b, maxWait: maxWait, shops: make(map[string]*bucket)}
}

// Acquire waits until a request of a shop may be sent. The caller calls release once, with what became of the
// request. An *Error with RetryAfter says that the shop hangs, or that the wait would be too long.
func (l *RateLimiter) Acquire(ctx context.Context, shop string, cost float64) (func(Feedback), error) {
	deadline := time.Now().Add(l.maxWait)
	for {
		t := l.tryAcquire(shop, cost)
		now := time.Now()
		switch {
		case t.hangs:
			return nil, &Error{Reason: ShopHangs, RetryAfter: max(t.wait, time.Second)}
		case t.bucket != nil:
			var once sync.Once
			return func(r Feedback) { once.Do(func() { l.release(t, cost, r) }) }, nil
		case t.released != nil:
			if t.wait = deadline.Sub(now); t.wait <= 0 {
				return nil, &Error{Reason: ShopBusy, RetryAfter: l.maxWait}
			}
		case now.Add(t.wait).After(deadline):
			return nil, &Error{Reason: ShopThrottled, RetryAfter: t.wait}
		}
		select {
		case <-time.After(t.wait):
		case <-t.released:
		case <-ctx.Done():
			return nil, failure(ctx, ctx.Err())
		}
	}
}

// turn is whether a request may be sent, and if not, what to wait for.
type turn struct {
	bucket   *bucket // of a request that may be sent
	permit   breaker.Permit
	hangs    bool
	wait     time.Duration
	released <-chan struct{} // closed when a request of the shop ends
}

func (l *RateLimiter) tryAcquire(shop string, cost float64) turn {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	l.sweep(now)
	b := l.shops[shop]
	if b == nil {
		b = newBucket(l.limits, now)
		l.shops[shop] = b
	}
	b.fill(now)
	need := min(cost, b.Capacity) // a greater cost than Capacity needs a full bucket
	switch {
	case b.pausedUntil.After(now):
		return turn{wait: b.pausedUntil.Sub(now)}
	case b.breaker.State() == breaker.Open:
		return turn{hangs: true, wait: b.breaker.OpenFor()}
	case b.inFlight >= b.MaxInFlight:
		return turn{released: b.released}
	case b.available < need:
		wait := time.Duration((need - b.available) / b.Refill * float64(time.Second))
		return turn{wait: max(wait, time.Millisecond)}
	}
	permit, ok := b.breaker.Acquire()
	if !ok {
		return turn{hangs: true, wait: minHangPause}
	}
	b.available -= cost
	b.pendingCost += cost
	b.inFlight++
	return turn{bucket: b, permit: permit}
}

func (b *bucket) fill(now time.Time) {
	b.available = min(b.Capacity, b.available+now.Sub(b.at).Seconds()*b.Refill)
	b.at = now
}

func (l *RateLimiter) release(t turn, cost float64, r Feedback) {
	l.mu.Lock()
	defer l.mu.Unlock()
	b, now := t.bucket, time.Now()
	switch r.Outcome {
	case Answered:
		b.breaker.Success()
	case NoAnswer:
		b.breaker.Failure(0)
	default:
		t.permit.Release()
	}
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
		idle := b.inFlight == 0 && !b.pausedUntil.After(now) && b.breaker.State() != breaker.Open
		if idle && now.Sub(b.at) > 10*interval {
			delete(l.shops, shop)
		}
	}
}
