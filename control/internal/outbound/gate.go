package outbound

import (
	"context"
	"sync"
	"time"
)

// Budget is what a store's provider grants when its answers do not say otherwise. Cost is in the provider's own unit: a
// request, or the points of a query.
type Budget struct {
	Capacity float64 // at most so much at once
	Refill   float64 // per second
	Flights  int     // requests under way at once
}

// Report is what an answer said about the store's budget.
type Report struct {
	Known     bool // Capacity, Available and Refill are the provider's word
	Capacity  float64
	Available float64
	Refill    float64       // 0: keep what is known
	Pause     time.Duration // no request before it has passed
}

// Gate keeps each store within its budget. A store that has to wait longer than a short while is told so, instead of
// keeping a worker that other stores need.
type Gate struct {
	budget Budget
	most   time.Duration

	mu     sync.Mutex
	stores map[string]*bucket
	swept  time.Time
}

type bucket struct {
	Budget
	level   float64
	at      time.Time // of level
	paused  time.Time // no request before it
	flights int
	pending float64       // the cost of what is under way
	left    chan struct{} // closed, and replaced, when a request leaves
}

// NewGate returns a gate in which nobody waits longer than most.
func NewGate(b Budget, most time.Duration) *Gate {
	return &Gate{budget: b, most: most, stores: make(map[string]*bucket)}
}

// Enter waits for room for one request of a store and takes it. The caller calls leave once, with what the answer said. A
// store that has no room within the gate's patience gets an *Error with RetryAfter.
func (g *Gate) Enter(ctx context.Context, store string, cost float64) (leave func(Report), err error) {
	patience := time.Now().Add(g.most)
	for {
		b, wait, left := g.take(store, cost)
		if b != nil {
			var once sync.Once
			return func(r Report) { once.Do(func() { g.leave(b, cost, r) }) }, nil
		}
		now := time.Now()
		if left == nil && now.Add(wait).After(patience) {
			return nil, &Error{Reason: Busy, RetryAfter: wait}
		}
		if left != nil {
			if wait = patience.Sub(now); wait <= 0 {
				return nil, &Error{Reason: ReadyTooLate, RetryAfter: g.most}
			}
		}
		if err := pause(ctx, wait, left); err != nil {
			return nil, failure(ctx, err)
		}
	}
}

func pause(ctx context.Context, wait time.Duration, left <-chan struct{}) error {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-left:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// take returns the bucket when there was room, else how long it takes until there may be, or the channel that tells of a
// request that left.
func (g *Gate) take(store string, cost float64) (*bucket, time.Duration, <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	g.sweep(now)
	b := g.stores[store]
	if b == nil {
		b = &bucket{Budget: g.budget, level: g.budget.Capacity, at: now, left: make(chan struct{})}
		g.stores[store] = b
	}
	b.fill(now)
	need := min(cost, b.Capacity) // what costs more than there ever is goes when all is there
	switch {
	case b.paused.After(now):
		return nil, b.paused.Sub(now), nil
	case b.flights >= b.Flights:
		return nil, 0, b.left
	case b.level < need:
		return nil, max(time.Duration((need-b.level)/b.Refill*float64(time.Second)), time.Millisecond), nil
	}
	b.level -= cost
	b.pending += cost
	b.flights++
	return b, 0, nil
}

func (b *bucket) fill(now time.Time) {
	b.level = min(b.Capacity, b.level+now.Sub(b.at).Seconds()*b.Refill)
	b.at = now
}

func (g *Gate) leave(b *bucket, cost float64, r Report) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	b.fill(now)
	b.flights--
	b.pending -= cost
	if r.Known && r.Capacity > 0 {
		b.Capacity = r.Capacity
		b.level = min(r.Capacity, r.Available) - b.pending // the provider has not seen what is under way
		if r.Refill > 0 {
			b.Refill = r.Refill
		}
	}
	if until := now.Add(r.Pause); r.Pause > 0 && until.After(b.paused) {
		b.paused = until
	}
	close(b.left)
	b.left = make(chan struct{})
}

// sweep forgets stores that have nothing to remember.
func (g *Gate) sweep(now time.Time) {
	const often = time.Minute
	if now.Sub(g.swept) < often {
		return
	}
	g.swept = now
	for store, b := range g.stores {
		if b.flights == 0 && !b.paused.After(now) && now.Sub(b.at) > 10*often {
			delete(g.stores, store)
		}
	}
}
