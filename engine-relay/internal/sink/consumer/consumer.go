package consumer

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"storefront.internal/engine-relay/internal/sink"
	"storefront.internal/shared/failpoint"
	"storefront.internal/shared/service"
	"storefront.internal/shared/stream"
)

// Writer stores a batch, however long that takes; the only error is the context's.
type Writer interface {
	Write(ctx context.Context, b *sink.Batch) error
}

// Generation is what the consumer group assigned to this member, until its context ends; stream.Assignment
// implements it.
type Generation interface {
	// Batches gives the records of all partitions, those of one partition in order.
	Batches() <-chan stream.Batch
	// Done marks batches as stored and commits offsets: a partition's offset moves over batches that are done
	// without a gap. After a failed commit, the next call commits again, even without batches.
	Done(batches ...stream.Batch) error
}

// Config is what a Consumer needs.
type Config struct {
	Writer     Writer
	Logger     *slog.Logger
	Registerer prometheus.Registerer
	Decisions  string // the topic of Decisions; every other topic is of signals
	Workers    int    // concurrent transactions
	BatchSize  int    // signals and Decisions of a transaction
	// Linger is how long the first record of a transaction waits for more: a small transaction costs about as
	// much as a large one.
	Linger time.Duration
	// Grace is how long a transaction may go on after its generation ended.
	Grace time.Duration
}

// commitRetryInterval is how often a failed commit is retried when no other commit comes.
const commitRetryInterval = time.Second

// Consumer consumes generations, one at a time.
type Consumer struct {
	cfg     Config
	metrics *metrics
	current atomic.Pointer[generationRun]
}

// New returns a Consumer.
func New(cfg Config) *Consumer {
	c := &Consumer{cfg: cfg}
	c.metrics = newMetrics(cfg.Registerer, c.oldestUnread)
	return c
}

// Ready returns an error until the consumer group has assigned partitions for the first time.
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
	if oldest := r.unstored.oldest(); !oldest.IsZero() {
		return max(0, time.Since(oldest).Seconds())
	}
	return 0
}

// Consume stores the records of the generation until ctx, which is the generation's, ends.
func (c *Consumer) Consume(ctx context.Context, g Generation) error {
	r := &generationRun{
		Consumer: c, generation: g,
		unstored: newUnstored(), batches: make(chan *txBatch), halted: make(map[topicPartition]bool),
	}
	c.current.Store(r)
	defer func() { c.metrics.halted.Sub(float64(len(r.halted))) }()

	work, release := service.WithGracePeriod(ctx, c.cfg.Grace)
	defer release()
	var workers, commits sync.WaitGroup
	for range c.cfg.Workers {
		workers.Go(func() { r.storeBatches(work) })
	}
	retry, end := context.WithCancel(context.WithoutCancel(ctx))
	commits.Go(func() { service.Every(retry, commitRetryInterval, r.retryCommit) })
	r.gather(ctx)
	close(r.batches)
	workers.Wait()
	end()
	commits.Wait()
	return ctx.Err()
}

// txBatch is one transaction's batch, and the fetched batches that it has records of.
type txBatch struct {
	batch *sink.Batch
	parts []*fetchedBatch
}

// generationRun is the work of one generation.
type generationRun struct {
	*Consumer
	generation   Generation
	unstored     *unstored
	batches      chan *txBatch
	commitFailed atomic.Bool // the last commit

	// Used only by gather:
	current    *txBatch
	halted     map[topicPartition]bool
	linger     *time.Timer // runs from the first record of the current batch
	lingerOver bool
}

// storeBatches stores batches until there are no more.
func (r *generationRun) storeBatches(ctx context.Context) {
	for l := range r.batches {
		if r.cfg.Writer.Write(ctx, l.batch) != nil {
			continue // the grace period is over: the records are read again
		}
		if whole := r.unstored.stored(l.parts); len(whole) > 0 {
			r.commit(whole...)
		}
	}
}

// commit commits offsets. Records whose offsets are not committed are read again; the ledger keeps them from
// being stored twice.
func (r *generationRun) commit(whole ...stream.Batch) {
	err := r.generation.Done(whole...)
	failpoint.Hit(failpoint.SinkCommitted)
	r.commitFailed.Store(err != nil)
	if err != nil {
		r.metrics.commitFailures.Inc()
		r.cfg.Logger.Warn("offsets were not committed", "error", err)
	}
}

func (r *generationRun) retryCommit(context.Context) {
	if r.commitFailed.Load() {
		r.commit()
	}
}
