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
	QueueFull   Reason = "in_flight"      // as many work and wait as may, and nothing that waits is cheaper
	BodyBytes   Reason = "body_bytes"     // the bodies in work and waiting take all the bytes that they may
	WaitTooLong Reason = "predicted_wait" // its turn would come too late
	Waited      Reason = "waited"         // its turn did not come in time
	Displaced   Reason = "displaced"      // a dearer request took its place in the queue
)

// Config is what Turns need. Zero values take the defaults named.
type Config struct {
	MaxInFlight int           // that work; 256
	MaxWaiting  int           // beside them; as many as may work
	MaxBytes    int           // of bodies that work or wait; 64 MiB
	Patience    time.Duration // longest wait for a turn; 50 ms
}

// Turns is the limit. It may be used by many goroutines.
type Turns struct {
	cfg Config

	mu      sync.Mutex
	working int
	bytes   int
	waiting [classes]list.List // of *waiter, oldest first
	queued  int
	mean    time.Duration // of the work of late
}

// Turn is the right to work. It is given back by Leave.
type Turn struct {
	bytes int
	began time.Time
}

// waiter is a request that waits. Whoever takes it out of the queue writes granted and closes called.
type waiter struct {
	class   Class
	place   *list.Element // nil once it is out of the queue
	called  chan struct{}
	granted bool // read after called was closed
}

// New returns Turns of which none is taken.
func New(c Config) *Turns {
	if c.MaxInFlight <= 0 {
		c.MaxInFlight = 256
	}
	if c.MaxWaiting <= 0 {
		c.MaxWaiting = c.MaxInFlight
	}
	if c.MaxBytes <= 0 {
		c.MaxBytes = 64 << 20
	}
	if c.Patience <= 0 {
		c.Patience = 50 * time.Millisecond
	}
	return &Turns{cfg: c}
}

// Enter takes a turn for a body of so many bytes, and waits for one if need be: at most the patience, and not beyond
// the context. The class is asked only when there is not room for everybody. Refused, reason says why.
func (t *Turns) Enter(ctx context.Context, bytes int, class func() Class) (turn Turn, reason Reason, ok bool) {
	t.mu.Lock()
	if t.working < t.cfg.MaxInFlight && t.bytes+bytes <= t.cfg.MaxBytes*3/4 {
		t.working++
		t.bytes += bytes
		t.mu.Unlock()
		return Turn{bytes: bytes, began: time.Now()}, "", true
	}
	t.mu.Unlock()
	return t.enterAs(ctx, bytes, class())
}

// enterAs is Enter where it matters how dear a request is.
func (t *Turns) enterAs(ctx context.Context, bytes int, class Class) (turn Turn, reason Reason, ok bool) {
	patience := t.cfg.Patience
	if deadline, bounded := ctx.Deadline(); bounded {
		patience = min(patience, time.Until(deadline))
	}
	t.mu.Lock()
	if !t.fits(bytes, class) {
		t.mu.Unlock()
		return Turn{}, BodyBytes, false
	}
	if t.working < t.cfg.MaxInFlight {
		t.working++
		t.bytes += bytes
		t.mu.Unlock()
		return Turn{bytes: bytes, began: time.Now()}, "", true
	}
	if t.foreseen(class) > patience {
		t.mu.Unlock()
		return Turn{}, WaitTooLong, false
	}
	if t.queued >= t.cfg.MaxWaiting && !t.displace(class) {
		t.mu.Unlock()
		return Turn{}, QueueFull, false
	}
	w := t.queue(class)
	t.bytes += bytes
	t.mu.Unlock()
	if reason, ok = t.await(ctx, w, patience); !ok {
		t.giveBack(bytes)
		return Turn{}, reason, false
	}
	return Turn{bytes: bytes, began: time.Now()}, "", true
}

// fits reports whether the bytes are there. The last quarter is kept for what is dear; one body alone always fits. The
// mutex is held.
func (t *Turns) fits(bytes int, class Class) bool {
	limit := t.cfg.MaxBytes
	if class < Sales && t.bytes > 0 {
		limit = limit * 3 / 4
	}
	return t.bytes+bytes <= limit
}

// foreseen is how long one more of the class would wait: those that go before it, at the pace of late. The mutex is
// held.
func (t *Turns) foreseen(class Class) time.Duration {
	before := 1
	for c := class; c < classes; c++ {
		before += t.waiting[c].Len()
	}
	return t.mean * time.Duration(before) / time.Duration(t.cfg.MaxInFlight)
}

// displace sends the youngest of the cheapest away when it is cheaper. The mutex is held.
func (t *Turns) displace(class Class) bool {
	for c := range class {
		if last := t.waiting[c].Back(); last != nil {
			t.call(last.Value.(*waiter), false)
			return true
		}
	}
	return false
}

func (t *Turns) queue(class Class) *waiter {
	w := &waiter{class: class, called: make(chan struct{})}
	w.place = t.waiting[class].PushBack(w)
	t.queued++
	return w
}

// call takes a waiter out of the queue and tells it why. The mutex is held.
func (t *Turns) call(w *waiter, granted bool) {
	t.waiting[w.class].Remove(w.place)
	w.place, w.granted = nil, granted
	t.queued--
	close(w.called)
}

func (t *Turns) await(ctx context.Context, w *waiter, patience time.Duration) (Reason, bool) {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-w.called:
	case <-timer.C:
	case <-ctx.Done():
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case w.place != nil:
		t.call(w, false)
		return Waited, false
	case !w.granted:
		return Displaced, false
	}
	return "", true // its turn, which may have come in the moment in which it gave up
}

func (t *Turns) giveBack(bytes int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.bytes -= bytes
}

// weight is how many pieces of work the mean is made of.
const weight = 32

// Leave gives a turn back, and hands it to the dearest that waits.
func (t *Turns) Leave(turn Turn) {
	took := time.Since(turn.began)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.bytes -= turn.bytes
	t.mean += (took - t.mean) / weight
	for c := classes - 1; c >= 0; c-- {
		if first := t.waiting[c].Front(); first != nil {
			t.call(first.Value.(*waiter), true)
			return
		}
	}
	t.working--
}

// State is what is there now.
type State struct{ Working, Waiting, Bytes int }

// State returns what is there now.
func (t *Turns) State() State {
	t.mu.Lock()
	defer t.mu.Unlock()
	return State{Working: t.working, Waiting: t.queued, Bytes: t.bytes}
}
