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

// Writer stores a batch, however long that takes; the only errors are the context's and sink.ErrBehind.
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
	// ID identifies this member in this generation.
	ID() string
	// Positions calls f with each partition and its position: all records before it are done.
	Positions(f func(topic string, partition int, position int64))
}

// Offsets is what PostgreSQL knows of stored offsets.
type Offsets interface {
	// Begin stores where the assignment begins, as Resumption.Start says, in the order of the partitions, and
	// gives it these partitions alone. It returns where they begin.
	Begin(ctx context.Context, assignment, cluster string, partitions []sink.Resumption) ([]int64, error)
	// Positions returns how far the partitions of the assignment are stored.
	Positions(ctx context.Context, assignment string) ([]sink.Position, error)
}

// Config is what a Consumer needs.
type Config struct {
	Writer     Writer
	Offsets    Offsets
	Logger     *slog.Logger
	Registerer prometheus.Registerer
	Signals    string // the topic of signals
	Decisions  string // the topic of Decisions
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
	again   atomic.Pointer[map[sink.Partition]int64] // to where records are read again in this generation
}

// New returns a Consumer.
func New(cfg Config) *Consumer {
	c := &Consumer{cfg: cfg}
	c.metrics = newMetrics(cfg.Registerer, c.oldestUnread, cfg.Signals, cfg.Decisions)
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

// Consume stores the records of the generation until ctx, which is the generation's, ends. It returns
// sink.ErrBehind when PostgreSQL lacks what this relay has stored: then the group must be joined again, so
// that the partitions begin where PostgreSQL is.
func (c *Consumer) Consume(ctx context.Context, g Generation) error {
	parent := ctx
	ctx, cancel := context.WithCancelCause(parent)
	defer cancel(nil)
	r := &generationRun{
		Consumer: c, generation: g, fail: cancel,
		unstored: newUnstored(), batches: make(chan *txBatch), halted: make(map[sink.Partition]bool),
	}
	c.current.Store(r)
	defer func() { c.metrics.halted.Sub(float64(len(r.halted))) }()

	work, release := service.WithGracePeriod(ctx, c.cfg.Grace)
	defer release()
	var workers, others sync.WaitGroup
	for range c.cfg.Workers {
		workers.Go(func() { r.storeBatches(work) })
	}
	retry, end := context.WithCancel(context.WithoutCancel(ctx))
	others.Go(func() { service.Every(retry, commitRetryInterval, r.retryCommit) })
	others.Go(func() { service.Every(ctx, positionsInterval, r.checkPositions) })
	r.gather(ctx)
	close(r.batches)
	workers.Wait()
	end()
	cancel(nil)
	others.Wait()
	if cause := context.Cause(ctx); errors.Is(cause, sink.ErrBehind) {
		return cause
	}
	return parent.Err()
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
	fail         context.CancelCauseFunc // ends the generation's work
	unstored     *unstored
	batches      chan *txBatch
	commitFailed atomic.Bool // the last commit

	// Used only by gather:
	current    *txBatch
	halted     map[sink.Partition]bool
	linger     *time.Timer // runs from the first record of the current batch
	lingerOver bool
}

// storeBatches stores batches until there are no more.
func (r *generationRun) storeBatches(ctx context.Context) {
	for l := range r.batches {
		l.batch.Claim(r.generation.ID(), r.positions())
		if err := r.cfg.Writer.Write(ctx, l.batch); err != nil {
			if errors.Is(err, sink.ErrBehind) {
				r.fail(err)
			}
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
