package redis

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	goredis "github.com/redis/go-redis/v9"
)

// maxGathered is the greatest number of commands that requests share in one pipeline.
const maxGathered = 2000

// errOpen says that Redis was out of reach a moment ago.
var errOpen = errors.New("redis: out of reach a moment ago")

// errNotSent is what a batch holds until its flight has ended one way or the other.
var errNotSent = errors.New("redis: pipeline was not sent")

// Pipeline sends the commands of concurrent requests together: group commit. A request that finds a free flight sends
// its commands at once, in its own goroutine. While all flights are out, requests gather; the flight that comes back
// hands its place to the first who waits, who sends for all. So an idle edge adds no delay, and a busy one needs few
// connections and few system calls. There is no goroutine; Close ends what is left of the connections.
type Pipeline struct {
	carrier carrier
	budget  time.Duration
	flights int
	breaker breaker

	batches sync.Pool

	mu    sync.Mutex
	out   int // flights that are out
	queue []*batch
}

// carrier takes the commands of batches to where their keys are, and brings each batch its answers, by the deadline. After
// an error any of the commands may have been carried out, and what the batches hold is worth nothing.
type carrier interface {
	carry(deadline time.Time, batches []*batch) error
}

// NewPipeline returns a Pipeline of at most that many flights at the same time; 2 keep a server busy.
func NewPipeline(client goredis.UniversalClient, flights int) *Pipeline {
	return newPipeline(client, flights, Budget)
}

// newPipeline has flights of its own connections to a single server: building and parsing go-redis' command objects cost
// more than everything else on the way to Redis. A cluster's go by way of the client.
func newPipeline(client goredis.UniversalClient, flights int, budget time.Duration) *Pipeline {
	p := &Pipeline{budget: budget, flights: max(flights, 1), breaker: breaker{now: time.Now}}
	p.batches.New = func() any { return &batch{told: make(chan bool, 1)} }
	if single, ok := client.(*goredis.Client); ok {
		p.carrier = &links{opts: single.Options()}
	} else {
		p.carrier = &cluster{client: client}
	}
	return p
}

// Close closes the connections that are idle, and those that are out as they come back. A Pipeline that is closed still
// works.
func (p *Pipeline) Close() {
	if l, ok := p.carrier.(*links); ok {
		l.close()
	}
}

// batch returns an empty batch. It is given back by free, once its answers are read.
func (p *Pipeline) batch() *batch { return p.batches.Get().(*batch) }

func (p *Pipeline) free(b *batch) {
	b.reset()
	p.batches.Put(b)
}

// Do sends the commands and waits for their answers. An answer that is an error is the error of the whole batch. After an error any of the commands may
// have been carried out, unless ctx ended while they waited.
func (p *Pipeline) Do(ctx context.Context, b *batch) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if !p.breaker.allow() {
		return errOpen
	}
	if p.board(b) {
		p.fly([]*batch{b})
		return b.err
	}
	lead, err := p.await(ctx, b)
	if err != nil {
		return err
	}
	if lead {
		p.fly(p.gather(b))
	}
	return b.err
}

// await waits until b is told how to go on. A caller whose time ends behind the flight before it does not watch for its
// end: that would cost it a timer.
func (p *Pipeline) await(ctx context.Context, b *batch) (lead bool, err error) {
	if end, bounded := ctx.Deadline(); bounded && time.Until(end) > p.budget {
		return <-b.told, nil
	}
	select {
	case lead = <-b.told:
		return lead, nil
	case <-ctx.Done():
		if p.withdraw(b) {
			return false, ctx.Err()
		}
		return <-b.told, nil // it is being sent: that ends within the budget
	}
}

// board takes a free flight; when there is none b waits in the queue.
func (p *Pipeline) board(b *batch) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.out < p.flights {
		p.out++
		return true
	}
	p.queue = append(p.queue, b)
	return false
}

// withdraw takes b out of the queue; false when it is on its way already.
func (p *Pipeline) withdraw(b *batch) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.Index(p.queue, b)
	if i < 0 {
		return false
	}
	p.queue = slices.Delete(p.queue, i, i+1)
	return true
}

// gather returns b and those who wait, up to maxGathered commands.
func (p *Pipeline) gather(b *batch) []*batch {
	p.mu.Lock()
	defer p.mu.Unlock()
	n, commands := 0, b.commands
	for n < len(p.queue) && commands+p.queue[n].commands <= maxGathered {
		commands += p.queue[n].commands
		n++
	}
	all := append(make([]*batch, 0, n+1), b)
	all = append(all, p.queue[:n]...)
	p.queue = slices.Delete(p.queue, 0, n)
	return all
}

// fly sends the batches, the first of which is the caller's own, and hands the flight on.
func (p *Pipeline) fly(batches []*batch) {
	defer p.land(batches)
	for _, b := range batches {
		b.err = errNotSent
	}
	err := p.carrier.carry(time.Now().Add(p.budget), batches)
	p.breaker.report(err == nil)
	if err == nil {
		return
	}
	for _, b := range batches {
		b.err = err
	}
}

// land tells the others that their commands are answered, and gives the flight to the first who waits.
func (p *Pipeline) land(batches []*batch) {
	for _, b := range batches[1:] {
		b.told <- false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.queue) == 0 {
		p.out--
		return
	}
	next := p.queue[0]
	p.queue = slices.Delete(p.queue, 0, 1)
	next.told <- true
}
