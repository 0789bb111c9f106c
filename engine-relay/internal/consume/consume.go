package consume

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"storefront.internal/engine-relay/internal/record"
	"storefront.internal/shared/crashpoint"
	"storefront.internal/shared/stream"
)

// Recorder stores a batch, however long that takes; its only errors are the context's.
type Recorder interface {
	Record(ctx context.Context, b *record.Batch) error
}

// Generation is what the group gave to this member, until its context ends; stream.Assignment is one.
type Generation interface {
	// Batches brings the records of all partitions, those of one partition in its order.
	Batches() <-chan stream.Batch
	// Done marks batches as stored and commits: a partition's offset moves over what is done without a gap. After a
	// failure the next Done, of nothing too, commits what that one could not.
	Done(batches ...stream.Batch) error
}

// Config is what a Consumer needs.
type Config struct {
	Recorder   Recorder
	Logger     *slog.Logger
	Registerer prometheus.Registerer
	Decisions  string        // the topic of Decisions; every other one is of signals
	Workers    int           // transactions at a time
	BatchSize  int           // signals and Decisions of a transaction
	Linger     time.Duration // how long a transaction's first record waits for others: a transaction of few costs nearly what one of many does
	Grace      time.Duration // how long a transaction may go on after its generation ended
}

// commitAgain is how often a commit that failed is tried again when nothing else brings one.
const commitAgain = time.Second

// Consumer consumes generations, one at a time.
type Consumer struct {
	cfg     Config
	metrics *metrics
	current atomic.Pointer[run]
}

// New returns a Consumer.
func New(cfg Config) *Consumer {
	c := &Consumer{cfg: cfg}
	c.metrics = newMetrics(cfg.Registerer, c.oldestUnread)
	return c
}

// Ready returns an error until the group has given this member its first part.
func (c *Consumer) Ready(context.Context) error {
	if c.current.Load() == nil {
		return errors.New("the consumer group is not joined yet")
	}
	return nil
}

func (c *Consumer) oldestUnread() float64 {
	r := c.current.Load()
	if r == nil {
		return 0
	}
	if oldest := r.holdings.oldest(); !oldest.IsZero() {
		return max(0, time.Since(oldest).Seconds())
	}
	return 0
}

// Consume stores what the generation brings until ctx ends, which is the generation's end.
func (c *Consumer) Consume(ctx context.Context, g Generation) error {
	r := &run{Consumer: c, generation: g, holdings: newHoldings(), loads: make(chan *load), halted: make(map[place]bool)}
	c.current.Store(r)
	defer func() { c.metrics.halted.Sub(float64(len(r.halted))) }()

	work, release := c.outliving(ctx)
	defer release()
	var workers, commits sync.WaitGroup
	for range c.cfg.Workers {
		workers.Go(func() { r.work(work) })
	}
	end := make(chan struct{})
	commits.Go(func() { r.commitAgain(end) })
	r.gather(ctx)
	close(r.loads)
	workers.Wait()
	close(end)
	commits.Wait()
	return ctx.Err()
}

// outliving returns a context that ends a grace after ctx, so that a transaction under way is not thrown away.
func (c *Consumer) outliving(ctx context.Context) (context.Context, func()) {
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	unwatch := context.AfterFunc(ctx, func() {
		timer := time.NewTimer(c.cfg.Grace)
		defer timer.Stop()
		select {
		case <-timer.C:
			cancel()
		case <-longer.Done():
		}
	})
	return longer, func() {
		unwatch()
		cancel()
	}
}

// load is one transaction's work and the batches that it holds records of.
type load struct {
	batch *record.Batch
	parts []*held
}

// run is one generation's work.
type run struct {
	*Consumer
	generation Generation
	holdings   *holdings
	loads      chan *load
	current    *load
	halted     map[place]bool // of gather alone
	linger     *time.Timer    // of gather alone: runs since the current load's first record
	ripe       bool           // of gather alone: it has run out
	behind     atomic.Bool    // the last commit failed
}

// work stores loads until there are no more.
func (r *run) work(ctx context.Context) {
	for l := range r.loads {
		if r.cfg.Recorder.Record(ctx, l.batch) != nil {
			continue // the grace is over: what is left is read again
		}
		if whole := r.holdings.stored(l.parts); len(whole) > 0 {
			r.done(whole...)
		}
	}
}

// done moves the offsets. What cannot be committed is read again some day, and stored once all the same.
func (r *run) done(whole ...stream.Batch) {
	err := r.generation.Done(whole...)
	crashpoint.Hit(crashpoint.SinkCommitted)
	r.behind.Store(err != nil)
	if err != nil {
		r.metrics.commitFailures.Inc()
		r.cfg.Logger.Warn("offsets were not committed", "error", err)
	}
}

func (r *run) commitAgain(end <-chan struct{}) {
	ticker := time.NewTicker(commitAgain)
	defer ticker.Stop()
	for {
		select {
		case <-end:
			return
		case <-ticker.C:
			if r.behind.Load() {
				r.done()
			}
		}
	}
}
