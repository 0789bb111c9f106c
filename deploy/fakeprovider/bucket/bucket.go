// Package bucket is the leaky bucket by which providers limit the calls of an app for a store. It owns the
// arithmetic; headers and the cost of a call are each provider's own.
package bucket

import (
	"sync"
	"time"
)

// Bucket holds at most Capacity and leaks Leak a second.
type Bucket struct {
	capacity, leak float64
	off            bool
	now            func() time.Time

	mu    sync.Mutex
	level float64
	at    time.Time
}

// unthrottledFactor multiplies the limits that an app without limits is told of: callers obey what they are
// told.
const unthrottledFactor = 1000

// New makes an empty bucket; one that is off never fills.
func New(capacity, leak float64, off bool, now func() time.Time) *Bucket {
	if off {
		capacity, leak = capacity*unthrottledFactor, leak*unthrottledFactor
	}
	return &Bucket{capacity: capacity, leak: leak, off: off, now: now, at: now()}
}

// State is what a bucket tells a caller.
type State struct {
	Capacity, Room, Leak float64
	Empties              time.Duration // until nothing is left in it
}

// Add counts a call of cost n when there is room for it.
func (b *Bucket) Add(n float64) (State, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.drain()
	fits := b.off || b.level+n <= b.capacity
	if fits && !b.off {
		b.level += n
	}
	return b.state(), fits
}

// Refund gives back what a call did not cost after all.
func (b *Bucket) Refund(n float64) State {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.drain()
	b.level = max(0, b.level-n)
	return b.state()
}

func (b *Bucket) drain() {
	now := b.now()
	b.level = max(0, b.level-b.leak*now.Sub(b.at).Seconds())
	b.at = now
}

func (b *Bucket) state() State {
	return State{
		b.capacity,
		b.capacity - b.level,
		b.leak,
		time.Duration(b.level / b.leak * float64(time.Second)),
	}
}
