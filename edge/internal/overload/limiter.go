package overload

import (
	"container/list"
	"context"
	"sync"
	"time"
)

// Reason says why a request was refused; it is a metric label.
type Reason string

// The reasons.
const (
	QueueFull Reason = "in_flight"  // the queue has no place for this priority
	BodyBytes Reason = "body_bytes" // the bodies in flight and waiting take all the bytes that they may
	TimedOut  Reason = "waited"     // no permit was free in time
)

// Config is what a Limiter needs. Zero values take the defaults named.
type Config struct {
	MaxInFlight int           // requests in flight; 256
	MaxWaiting  int           // requests that wait; MaxInFlight
	MaxBytes    int           // of the bodies in flight and waiting; 64 MiB
	MaxWait     time.Duration // longest wait for a permit; 50 ms
}

// Limiter gives out permits. It is safe for concurrent use.
type Limiter struct {
	cfg Config

	mu       sync.Mutex
	inFlight int
	bytes    int
	queues   [priorities]list.List // of chan struct{}, closed when the permit is granted; oldest first
	waiting  int
}

// Permit is the right to handle a request. Release gives it back.
type Permit struct{ bytes int }

// New returns a limiter whose permits are all free.
func New(c Config) *Limiter {
	if c.MaxInFlight <= 0 {
		c.MaxInFlight = 256
	}
	if c.MaxWaiting <= 0 {
		c.MaxWaiting = c.MaxInFlight
	}
	if c.MaxBytes <= 0 {
		c.MaxBytes = 64 << 20
	}
	if c.MaxWait <= 0 {
		c.MaxWait = 50 * time.Millisecond
	}
	return &Limiter{cfg: c}
}

// Acquire takes a permit for a body of that many bytes. It waits for one at most MaxWait and not beyond the
// context. priority is called only when there is not room for every priority. When ok is false, reason says
// why.
func (l *Limiter) Acquire(ctx context.Context, bytes int,
	priority func() Priority) (p Permit, reason Reason, ok bool) {
	l.mu.Lock()
	if l.inFlight < l.cfg.MaxInFlight && l.bytes+bytes <= l.maxBytes(Sheddable) {
		l.inFlight++
		l.bytes += bytes
		l.mu.Unlock()
		return Permit{bytes}, "", true
	}
	l.mu.Unlock()
	return l.acquireOrWait(ctx, bytes, priority())
}

func (l *Limiter) acquireOrWait(ctx context.Context, bytes int, priority Priority) (Permit, Reason, bool) {
	l.mu.Lock()
	switch {
	case l.bytes+bytes > l.maxBytes(priority):
		l.mu.Unlock()
		return Permit{}, BodyBytes, false
	case l.inFlight < l.cfg.MaxInFlight:
		l.inFlight++
		l.bytes += bytes
		l.mu.Unlock()
		return Permit{bytes}, "", true
	case l.waiting >= l.maxWaiting(priority):
		l.mu.Unlock()
		return Permit{}, QueueFull, false
	}
	granted := make(chan struct{})
	waiter := l.queues[priority].PushBack(granted)
	l.waiting++
	l.bytes += bytes
	l.mu.Unlock()

	timer := time.NewTimer(l.cfg.MaxWait)
	defer timer.Stop()
	select {
	case <-granted:
		return Permit{bytes}, "", true
	case <-timer.C:
	case <-ctx.Done():
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-granted: // at the last moment
		return Permit{bytes}, "", true
	default:
	}
	l.queues[priority].Remove(waiter)
	l.waiting--
	l.bytes -= bytes
	return Permit{}, TimedOut, false
}

// maxBytes keeps the last quarter of the bytes for critical requests; one body alone always fits.
func (l *Limiter) maxBytes(p Priority) int {
	if p == Critical || l.bytes == 0 {
		return l.cfg.MaxBytes
	}
	return l.cfg.MaxBytes * 3 / 4
}

// maxWaiting is the length of the queue at which a request of this priority is refused.
func (l *Limiter) maxWaiting(p Priority) int {
	return l.cfg.MaxWaiting * [priorities]int{Sheddable: 2, Normal: 3, Critical: 4}[p] / 4
}

// Release gives a permit back; the oldest waiter of the highest priority gets it.
func (l *Limiter) Release(p Permit) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.bytes -= p.bytes
	for i := priorities - 1; i >= 0; i-- {
		if first := l.queues[i].Front(); first != nil {
			close(l.queues[i].Remove(first).(chan struct{}))
			l.waiting--
			return
		}
	}
	l.inFlight--
}

// State is how much of the limits is used.
type State struct{ InFlight, Waiting, Bytes int }

// State returns how much of the limits is used now.
func (l *Limiter) State() State {
	l.mu.Lock()
	defer l.mu.Unlock()
	return State{InFlight: l.inFlight, Waiting: l.waiting, Bytes: l.bytes}
}
