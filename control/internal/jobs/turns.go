package jobs

import (
	"sync"
	"time"

	"github.com/riverqueue/river"

	"storefront.internal/shared/ident"
)

// turns bounds how many jobs of one connection a process runs at a time, so that a shop that answers slowly
// leaves workers to the others. A job beyond that is snoozed until its turn: as long as the jobs before it
// probably take, so that a long queue of one shop does not come back again and again.
type turns struct {
	most int

	mu sync.Mutex
	of map[ident.ConnectionID]*turn
}

// turn is what is known of the jobs of a connection while some run or are snoozed.
type turn struct {
	running int
	took    time.Duration // of a job, a moving average
	next    time.Time     // for when the last job was snoozed
}

// The bounds of a snooze, and the first guess of how long a job takes.
const (
	minTurn   = time.Second
	maxTurn   = 5 * time.Minute
	firstTook = 500 * time.Millisecond
)

func newTurns(most int) *turns {
	return &turns{most: most, of: make(map[ident.ConnectionID]*turn)}
}

// run runs a job of a connection, or snoozes it.
func (t *turns) run(c ident.ConnectionID, work func() error) error {
	wait := t.begin(c)
	if wait > 0 {
		return river.JobSnooze(wait)
	}
	began := time.Now()
	defer func() { t.end(c, time.Since(began)) }()
	return work()
}

// begin takes a place. Without a free one it returns how long to wait.
func (t *turns) begin(c ident.ConnectionID) (wait time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	o := t.of[c]
	if o == nil {
		o = &turn{took: firstTook}
		t.of[c] = o
	}
	if o.running < t.most {
		o.running++
		return 0
	}
	now := time.Now()
	if o.next.Before(now.Add(minTurn)) {
		o.next = now.Add(minTurn)
	}
	o.next = o.next.Add(o.took / time.Duration(t.most))
	if latest := now.Add(maxTurn); o.next.After(latest) {
		o.next = latest
	}
	return o.next.Sub(now)
}

func (t *turns) end(c ident.ConnectionID, took time.Duration) {
	const weight = 8
	t.mu.Lock()
	defer t.mu.Unlock()
	o := t.of[c]
	o.took += (took - o.took) / weight
	if o.running--; o.running == 0 && o.next.Before(time.Now()) {
		delete(t.of, c)
	}
}
