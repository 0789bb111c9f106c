package intake

import (
	"context"
	"sync"
	"time"
)

// Bounds of the background writer of registers.
const (
	markBatch  = 100       // registers per call
	markQueue  = 20_000    // registers that wait; beyond that the lease alone ends an attempt
	markPeriod = 2 * lease // how long a register is tried; the lease has ended the attempt long before
	markPause  = 50 * time.Millisecond
	markCalm   = time.Second // the longest pause between two tries
)

// marker writes registers that could not be written in a request's own time. Without it a resend of a batch that got
// 503 would wait for the lease. It keeps nothing over a restart: the lease covers that.
type marker struct {
	claims  Claims
	dropped func()

	mu      sync.Mutex
	queue   []pendingMark
	running bool
	closed  bool
	idle    chan struct{} // closed while nothing runs
	ctx     context.Context
	cancel  context.CancelFunc
}

type pendingMark struct {
	attempt string
	state   Register
	until   time.Time
}

func newMarker(claims Claims, dropped func()) *marker {
	m := &marker{claims: claims, dropped: dropped, idle: make(chan struct{})}
	close(m.idle)
	m.ctx, m.cancel = context.WithCancel(context.Background())
	return m
}

// later writes the register soon, unless it has a value by then. It never blocks.
func (m *marker) later(attempt string, state Register) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed || len(m.queue) >= markQueue {
		m.dropped()
		return
	}
	m.queue = append(m.queue, pendingMark{attempt: attempt, state: state, until: time.Now().Add(markPeriod)})
	if !m.running {
		m.running = true
		m.idle = make(chan struct{})
		go m.run(m.idle)
	}
}

// run writes until nothing waits.
func (m *marker) run(idle chan struct{}) {
	defer close(idle)
	wait := markPause
	for {
		marks := m.head()
		if len(marks) == 0 {
			return
		}
		if m.write(marks) == nil {
			wait = markPause
			continue
		}
		m.again(marks)
		select {
		case <-time.After(wait):
		case <-m.ctx.Done():
		}
		wait = min(2*wait, markCalm)
	}
}

// head takes the first marks of one state; none ends the run.
func (m *marker) head() []pendingMark {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := 0
	for n < len(m.queue) && n < markBatch && m.queue[n].state == m.queue[0].state && m.ctx.Err() == nil {
		n++
	}
	if n == 0 {
		m.running = false
		m.queue = nil
		return nil
	}
	marks := m.queue[:n:n]
	m.queue = m.queue[n:]
	return marks
}

func (m *marker) write(marks []pendingMark) error {
	attempts := make([]string, len(marks))
	for i := range marks {
		attempts[i] = marks[i].attempt
	}
	return m.claims.Mark(m.ctx, attempts, marks[0].state, make([]Register, len(marks)))
}

// again puts back the marks that are still worth it.
func (m *marker) again(marks []pendingMark) {
	now := time.Now()
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, p := range marks {
		if now.Before(p.until) {
			m.queue = append(m.queue, p)
		} else {
			m.dropped()
		}
	}
}

// close lets what waits be written until ctx ends, and takes no more.
func (m *marker) close(ctx context.Context) {
	m.mu.Lock()
	m.closed = true
	idle := m.idle
	m.mu.Unlock()
	select {
	case <-idle:
	case <-ctx.Done():
	}
	m.cancel()
	<-idle
}
