package redis

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	goredis "github.com/redis/go-redis/v9"
)

// maxGathered is the greatest number of commands that requests share in one pipeline.
const maxGathered = 2000

// errOpen says that Redis was out of reach a moment ago.
var errOpen = errors.New("redis: out of reach a moment ago")

// Pipeline sends the commands of concurrent requests together: group commit. A request that finds a free flight sends
// its commands at once, in its own goroutine. While all flights are out, requests gather; the flight that comes back
// hands its place to the first who waits, who sends for all. So an idle edge adds no delay, and a busy one needs few
// connections and few system calls. There is no goroutine and nothing to stop.
type Pipeline struct {
	client  goredis.UniversalClient
	budget  time.Duration
	flights int
	breaker breaker

	mu    sync.Mutex
	out   int // flights that are out
	queue []*batch
}

// batch is what one request sends. told gets true when the request has to lead the next flight, false when its
// commands are answered.
type batch struct {
	cmds []goredis.Cmder
	err  error
	told chan bool
}

// NewPipeline returns a Pipeline of at most that many flights at the same time; 2 keep a server busy.
func NewPipeline(client goredis.UniversalClient, flights int) *Pipeline {
	return newPipeline(client, flights, Budget)
}

func newPipeline(client goredis.UniversalClient, flights int, budget time.Duration) *Pipeline {
	return &Pipeline{client: client, budget: budget, flights: max(flights, 1), breaker: breaker{now: time.Now}}
}

// Do sends the commands and waits for their answers. A nil reply is no error. After an error any of the commands may
// have been carried out, unless ctx ended while they waited.
func (p *Pipeline) Do(ctx context.Context, cmds []goredis.Cmder) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if !p.breaker.allow() {
		return errOpen
	}
	b := &batch{cmds: cmds}
	if p.board(b) {
		p.fly([]*batch{b})
		return b.err
	}
	lead := false
	select {
	case lead = <-b.told:
	case <-ctx.Done():
		if p.withdraw(b) {
			return ctx.Err()
		}
		lead = <-b.told // it is being sent: that ends within the budget
	}
	if lead {
		p.fly(p.gather(b))
	}
	return b.err
}

// board takes a free flight; when there is none b waits in the queue.
func (p *Pipeline) board(b *batch) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.out < p.flights {
		p.out++
		return true
	}
	b.told = make(chan bool, 1)
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
	n, commands := 0, len(b.cmds)
	for n < len(p.queue) && commands+len(p.queue[n].cmds) <= maxGathered {
		commands += len(p.queue[n].cmds)
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
	ctx, cancel := context.WithTimeout(context.Background(), p.budget)
	defer cancel()
	for _, b := range batches {
		b.err = errors.New("redis: pipeline was not sent")
	}
	pipe := p.client.Pipeline()
	for _, b := range batches {
		_ = pipe.BatchProcess(ctx, b.cmds...) // queues only
	}
	_, err := pipe.Exec(ctx)
	var answer goredis.Error
	if err != nil && !errors.As(err, &answer) {
		err = fmt.Errorf("redis: pipeline: %w", err)
	} else {
		err = nil
	}
	p.breaker.report(err == nil)
	for _, b := range batches {
		b.err = err
		if err == nil {
			b.err = firstError(b.cmds)
		}
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

// firstError returns the first answer that is an error; a nil reply is none.
func firstError(cmds []goredis.Cmder) error {
	for _, cmd := range cmds {
		if err := cmd.Err(); err != nil && !errors.Is(err, goredis.Nil) {
			return fmt.Errorf("redis: %s: %w", cmd.Name(), err)
		}
	}
	return nil
}
