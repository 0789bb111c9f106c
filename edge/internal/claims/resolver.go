package claims

import (
	"context"
	"sync"
	"time"

	"storefront.internal/shared/backoff"
)

// Limits of the resolver.
const (
	resolveBatch = 100 // statuses in one call
	// statuses that wait; more are dropped, and the attempts end by TakeoverAfter
	resolveQueue = 20_000
	resolveFor   = 2 * TakeoverAfter // how long a status is tried; other requests have taken over long before
)

// resolver writes, in the background, statuses that a request could not write in its own time. Without it a
// resend after a 503 would wait for TakeoverAfter. It keeps nothing over a restart.
type resolver struct {
	store   Store
	dropped func()

	mu     sync.Mutex
	queue  []unwritten
	closed bool
	idle   chan struct{} // closed while the writer does not run
	ctx    context.Context
	cancel context.CancelFunc
}

// unwritten is a status that is still to be written.
type unwritten struct {
	attempt string
	status  Status
	until   time.Time
}

func newResolver(store Store, dropped func()) *resolver {
	r := &resolver{store: store, dropped: dropped}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	return r
}

// enqueue has the status written soon, unless the attempt has one by then. It never blocks.
func (r *resolver) enqueue(attempt string, status Status) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed || len(r.queue) >= resolveQueue {
		r.dropped()
		return
	}
	r.queue = append(r.queue, unwritten{attempt: attempt, status: status, until: time.Now().Add(resolveFor)})
	if r.idle == nil {
		r.idle = make(chan struct{})
		go r.run(r.idle)
	}
}

// run writes until the queue is empty.
func (r *resolver) run(idle chan struct{}) {
	defer close(idle)
	pauses := backoff.Policy{Min: 50 * time.Millisecond, Max: time.Second}
	for failures := 0; ; {
		batch := r.dequeue()
		if len(batch) == 0 {
			return
		}
		if r.write(batch) == nil {
			failures = 0
			continue
		}
		failures++
		r.requeue(batch)
		_ = backoff.Sleep(r.ctx, pauses.Full(failures)) // when it ends early, dequeue ends the run
	}
}

// dequeue takes entries of one status from the front of the queue; none when the run shall end.
func (r *resolver) dequeue() []unwritten {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for n < len(r.queue) && n < resolveBatch && r.queue[n].status == r.queue[0].status && r.ctx.Err() == nil {
		n++
	}
	if n == 0 {
		r.idle, r.queue = nil, nil
		return nil
	}
	batch := r.queue[:n:n]
	r.queue = r.queue[n:]
	return batch
}

func (r *resolver) write(batch []unwritten) error {
	attempts := make([]string, len(batch))
	for i := range batch {
		attempts[i] = batch[i].attempt
	}
	return r.store.Resolve(r.ctx, attempts, batch[0].status, make([]Status, len(batch)))
}

// requeue puts back the entries that are still worth a try.
func (r *resolver) requeue(batch []unwritten) {
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, u := range batch {
		if now.Before(u.until) {
			r.queue = append(r.queue, u)
		} else {
			r.dropped()
		}
	}
}

// close lets the queue be written until ctx ends, and accepts no more.
func (r *resolver) close(ctx context.Context) {
	defer r.cancel()
	r.mu.Lock()
	r.closed = true
	idle := r.idle
	r.mu.Unlock()
	if idle == nil {
		return
	}
	select {
	case <-idle:
	case <-ctx.Done():
		r.cancel()
		<-idle
	}
}
