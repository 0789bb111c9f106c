// Package redisbatch owns the edge's way to Redis: the go-redis client, and the Batcher, by which concurrent
// requests share round trips.
//
// A Batch holds the commands of one request in wire format (RESP2), and their replies. To a single server the
// Batcher sends batches over conns of its own, since go-redis' command objects cost more than everything else
// on the way. To a cluster it sends them by the go-redis client, which knows which server holds which key.
// Every command touches one key and can be sent twice.
package redisbatch

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"storefront.internal/shared/backoff"
	"storefront.internal/shared/breaker"
)

// maxCommands is the greatest number of commands in one round trip of several batches.
const maxCommands = 2000

// The breaker opens after openAfter failures in a row, for openFor. Failures count only when nothing has
// succeeded for patience: after a stall of this process or of its machine, round trips in flight fail
// together, and refusing all requests would make the stall longer.
const (
	openAfter = 3
	openFor   = 500 * time.Millisecond
	patience  = time.Second
)

// ErrUnavailable says that Redis was out of reach a moment ago, and is not tried again yet.
var ErrUnavailable = errors.New("redis: unavailable a moment ago")

// errNotSent is the error of a batch until its round trip has ended.
var errNotSent = errors.New("redis: the commands were not sent")

// Batcher executes the commands of concurrent requests together: group commit. It has a number of slots. A
// request that finds a free slot executes its batch at once, in its own goroutine. While all slots are taken
// batches queue up; the request that ends a round trip passes its slot to the first in the queue, which
// executes the whole queue. So an idle edge has no delay, and a busy one needs few conns and few system
// calls. It is safe for concurrent use.
type Batcher struct {
	transport transport
	timeout   time.Duration
	slots     int
	breaker   *breaker.Breaker
	batches   sync.Pool

	mu           sync.Mutex
	taken        int // slots
	queue        []*Batch
	failingSince time.Time // zero after a success
}

// transport executes the batches' commands and fills in their replies before the deadline. After an error any
// command may have run, and the replies mean nothing.
type transport interface {
	execute(deadline time.Time, batches []*Batch) error
	// warm makes that many conns, so that the first round trips do not wait for them.
	warm(ctx context.Context, conns int) error
	close()
}

// NewBatcher returns a Batcher with that many slots; 2 keep a server busy. The timeout is that of a round
// trip.
func NewBatcher(client goredis.UniversalClient, slots int, timeout time.Duration) *Batcher {
	if single, ok := client.(*goredis.Client); ok {
		return newBatcher(&connPool{opts: single.Options()}, slots, timeout)
	}
	return newBatcher(&cluster{client: client}, slots, timeout)
}

func newBatcher(t transport, slots int, timeout time.Duration) *Batcher {
	b := &Batcher{transport: t, timeout: timeout, slots: max(slots, 1), breaker: breaker.New(breaker.Config{
		Failures: openAfter, Open: backoff.Policy{Min: openFor, Max: openFor}})}
	b.batches.New = func() any { return &Batch{turn: make(chan bool, 1)} }
	return b
}

// Close closes the idle conns, and the others when their round trips end. A closed Batcher still works.
func (b *Batcher) Close() { b.transport.close() }

// Warm makes a conn for each slot. Without it the first round trips do.
func (b *Batcher) Warm(ctx context.Context) error { return b.transport.warm(ctx, b.slots) }

// Get returns an empty Batch. Give it back by Put when its replies are read.
func (b *Batcher) Get() *Batch { return b.batches.Get().(*Batch) }

// Put takes back a Batch.
func (b *Batcher) Put(batch *Batch) {
	batch.reset()
	b.batches.Put(batch)
}

// Do executes the commands and waits for their replies. An error reply is the error of the whole batch. After
// an error any of the commands may have run, unless ctx ended while the batch was in the queue.
func (b *Batcher) Do(ctx context.Context, batch *Batch) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	permit, ok := b.breaker.Acquire()
	if !ok {
		return ErrUnavailable
	}
	if b.acquireSlot(batch) {
		b.execute(permit, []*Batch{batch})
		return batch.err
	}
	leads, err := b.waitTurn(ctx, batch)
	if err != nil {
		permit.Release()
		return err
	}
	if leads {
		b.execute(permit, b.takeQueue(batch))
	}
	return batch.err
}

// acquireSlot takes a free slot. When there is none the batch goes into the queue.
func (b *Batcher) acquireSlot(batch *Batch) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.taken < b.slots {
		b.taken++
		return true
	}
	b.queue = append(b.queue, batch)
	return false
}

// waitTurn waits in the queue until the batch is executed, or leads the next round trip. When ctx ends later
// than the round trip before it has to, the wait does not watch ctx, as that would start ctx's timer.
func (b *Batcher) waitTurn(ctx context.Context, batch *Batch) (leads bool, err error) {
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) > b.timeout {
		return <-batch.turn, nil
	}
	select {
	case leads = <-batch.turn:
		return leads, nil
	case <-ctx.Done():
		if b.dequeue(batch) {
			return false, ctx.Err()
		}
		return <-batch.turn, nil // it is being executed, which ends within the timeout
	}
}

// dequeue takes the batch out of the queue; false when it has left the queue already.
func (b *Batcher) dequeue(batch *Batch) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	i := slices.Index(b.queue, batch)
	if i < 0 {
		return false
	}
	b.queue = slices.Delete(b.queue, i, i+1)
	return true
}

// takeQueue returns the leader and the batches in the queue, up to maxCommands.
func (b *Batcher) takeQueue(leader *Batch) []*Batch {
	b.mu.Lock()
	defer b.mu.Unlock()
	n, commands := 0, leader.commands
	for n < len(b.queue) && commands+b.queue[n].commands <= maxCommands {
		commands += b.queue[n].commands
		n++
	}
	batches := append(make([]*Batch, 0, n+1), leader)
	batches = append(batches, b.queue[:n]...)
	b.queue = slices.Delete(b.queue, 0, n)
	return batches
}

// execute makes a round trip of the batches, the first of which is the caller's own, and releases the slot.
func (b *Batcher) execute(permit breaker.Permit, batches []*Batch) {
	defer b.releaseSlot(batches)
	for _, batch := range batches {
		batch.err = errNotSent
	}
	err := b.transport.execute(time.Now().Add(b.timeout), batches)
	lasts := b.failing(err != nil)
	switch {
	case err == nil:
		b.breaker.Success()
		return
	case lasts || permit.Probe():
		b.breaker.Failure(0)
	default:
		permit.Release()
	}
	for _, batch := range batches {
		batch.err = err
	}
}

// failing notes the outcome of a round trip, and reports whether nothing has succeeded for patience.
func (b *Batcher) failing(failed bool) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case !failed:
		b.failingSince = time.Time{}
	case b.failingSince.IsZero():
		b.failingSince = time.Now()
	}
	return failed && time.Since(b.failingSince) >= patience
}

// releaseSlot wakes the owners of the other batches, and passes the slot to the first in the queue.
func (b *Batcher) releaseSlot(batches []*Batch) {
	for _, batch := range batches[1:] {
		batch.turn <- false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.queue) == 0 {
		b.taken--
		return
	}
	leader := b.queue[0]
	b.queue = slices.Delete(b.queue, 0, 1)
	leader.turn <- true
}
