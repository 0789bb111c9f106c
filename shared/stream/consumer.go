package stream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/segmentio/kafka-go"

	"storefront.internal/shared/backoff"
)

// ErrOffsetLost stops a Consumer: the broker does not have the next offset of a partition. Records may be
// lost unread, so an operator decides.
var ErrOffsetLost = errors.New("stream: offset lost")

// ConsumerConfig says what a Consumer reads. Zero values take the defaults named.
type ConsumerConfig struct {
	Brokers             []string
	Security            Security
	Group               string
	Topics              []string
	ClientID            string
	MaxBytes            int // of one fetch; 1 MiB
	BatchesPerPartition int // fetched ahead; 2
	// an operator decided to continue at the first available offset where one is lost
	AcceptLoss bool
	// Begin decides where the partitions of a generation begin, before the first fetch; it may change each
	// Start's Offset. It ends at the latest with its context, and its error ends the Consumer. Without it,
	// they begin at the group's offsets.
	Begin             func(ctx context.Context, b *Beginning) error
	SessionTimeout    time.Duration // 10 s
	HeartbeatInterval time.Duration // 3 s
	RebalanceTimeout  time.Duration // 10 s; a handler that ends later than that makes its member join again
	StallAfter        time.Duration // 30 s
	CheckEvery        time.Duration // 5 s; how often stalls are looked for
	Registerer        prometheus.Registerer
	Logger            *slog.Logger
	Now               func() time.Time
}

func (c ConsumerConfig) withDefaults() ConsumerConfig {
	c.SessionTimeout = cmp.Or(c.SessionTimeout, 10*time.Second)
	c.HeartbeatInterval = cmp.Or(c.HeartbeatInterval, 3*time.Second)
	c.RebalanceTimeout = cmp.Or(c.RebalanceTimeout, 10*time.Second)
	c.StallAfter = cmp.Or(c.StallAfter, 30*time.Second)
	c.CheckEvery = cmp.Or(c.CheckEvery, 5*time.Second)
	c.MaxBytes = cmp.Or(c.MaxBytes, 1<<20)
	c.BatchesPerPartition = cmp.Or(c.BatchesPerPartition, 2)
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}

// Handler stores batches until ctx ends and marks them with Done. When ctx ends it may finish a short
// transaction first: Done works until it returns. An error that it returns while ctx lives ends the Consumer.
type Handler func(ctx context.Context, a *Assignment) error

// Consumer is one member of a consumer group.
type Consumer struct {
	cfg     ConsumerConfig
	metrics *consumerMetrics
}

// NewConsumer makes a Consumer. It connects in Run.
func NewConsumer(cfg ConsumerConfig) *Consumer {
	cfg = cfg.withDefaults()
	return &Consumer{cfg: cfg, metrics: newConsumerMetrics(cfg.Registerer, cfg.Topics)}
}

func (c *Consumer) newClient() (*kafka.Client, func()) {
	return newClient(c.cfg.Brokers, c.cfg.Security, c.cfg.ClientID, c.cfg.Topics...)
}

// Run joins the group and calls handle once per generation, never concurrently. It returns nil when ctx ends,
// or ErrOffsetLost, ErrStalled, or the handler's error.
func (c *Consumer) Run(ctx context.Context, handle Handler) error {
	stalledAt := map[topicPartition]int64{}
	for {
		err := c.runGroup(ctx, handle)
		var stall *stallError
		switch {
		case ctx.Err() != nil && (err == nil || !errors.Is(err, ErrOffsetLost)):
			return nil
		case errors.As(err, &stall):
			c.metrics.rebuilds.Inc()
			c.cfg.Logger.Error("the consumer stalled and is rebuilt", "error", err)
			for at, offset := range stall.at {
				if before, again := stalledAt[at]; again && before == offset {
					return err
				}
			}
			maps.Copy(stalledAt, stall.at)
		case err != nil:
			return err
		}
	}
}

// runGroup joins the group as one member, runs its generations, and leaves.
func (c *Consumer) runGroup(ctx context.Context, handle Handler) error {
	group, err := kafka.NewConsumerGroup(kafka.ConsumerGroupConfig{
		ID: c.cfg.Group, Brokers: c.cfg.Brokers, Topics: c.cfg.Topics, StartOffset: kafka.FirstOffset,
		Dialer: &kafka.Dialer{ClientID: c.cfg.ClientID, Timeout: 3 * time.Second,
			TLS: c.cfg.Security.tls, SASLMechanism: c.cfg.Security.sasl},
		SessionTimeout: c.cfg.SessionTimeout, HeartbeatInterval: c.cfg.HeartbeatInterval,
		RebalanceTimeout: c.cfg.RebalanceTimeout,
		JoinGroupBackoff: 500 * time.Millisecond, WatchPartitionChanges: true,
		PartitionWatchInterval: 30 * time.Second,
	})
	if err != nil {
		return fmt.Errorf("stream: consumer group: %w", err)
	}
	defer func() { _ = group.Close() }() // leaves the group; never returns an error
	client, closeClient := c.newClient()
	defer closeClient()
	for {
		gen, err := c.join(ctx, group)
		if err != nil || gen == nil {
			return err
		}
		c.metrics.generations.Inc()
		if err := c.runGeneration(ctx, client, gen, handle); err != nil {
			return err
		}
	}
}

// join waits for the next generation; it returns nil when ctx ends. kafka-go repeats failed requests to the
// coordinator with a back-off of its own. When neither a generation nor an error comes for longer than a
// rebalance can take, the group is stuck.
func (c *Consumer) join(ctx context.Context, group *kafka.ConsumerGroup) (*kafka.Generation, error) {
	for {
		wait, cancel := context.WithTimeout(ctx, c.cfg.RebalanceTimeout+c.cfg.SessionTimeout+c.cfg.StallAfter)
		gen, err := group.Next(wait)
		cancel()
		switch {
		case ctx.Err() != nil:
			return nil, nil
		case err == nil:
			return gen, nil
		case errors.Is(err, context.DeadlineExceeded) && wait.Err() != nil:
			return nil, &stallError{at: map[topicPartition]int64{{topic: "joining the group"}: 0}}
		}
		c.cfg.Logger.Warn("joining the consumer group failed", "group", c.cfg.Group, "error", err)
	}
}

// runGeneration runs the fetchers, the stall watch and the handler. It returns when all have ended, since
// only then may the group go on to the next generation.
func (c *Consumer) runGeneration(ctx context.Context, client *kafka.Client, gen *kafka.Generation,
	handle Handler) error {
	ctx, cancel := context.WithCancelCause(ctx)
	finished := make(chan struct{})
	defer close(finished)
	defer cancel(nil)
	gen.Start(func(genCtx context.Context) {
		stop := context.AfterFunc(genCtx, func() { cancel(ErrFenced) })
		defer stop()
		<-finished
	})
	a := newAssignment(gen, c.cfg.BatchesPerPartition, c.committer(client, gen))
	if err := c.begin(ctx, client, gen, a); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	c.cfg.Logger.Info("joined the consumer group", "group", c.cfg.Group, "generation", gen.ID, "partitions",
		a.Partitions())
	var fetchers, all sync.WaitGroup
	for _, at := range a.partitions {
		fetchers.Go(func() {
			if err := c.fetchLoop(ctx, client, a, at); err != nil {
				cancel(err)
			}
		})
	}
	all.Go(func() {
		if err := c.watch(ctx, a); err != nil {
			cancel(err)
		}
	})
	all.Go(func() { fetchers.Wait(); close(a.batches) })
	defer all.Wait()
	defer cancel(nil) // before the wait, also when the handler panics
	err := handle(ctx, a)
	if cause := context.Cause(ctx); errors.Is(cause, ErrOffsetLost) || errors.Is(cause, ErrStalled) {
		return cause
	}
	if ctx.Err() != nil || err == nil { // the error of a handler whose generation ended is a consequence
		return nil
	}
	return err
}

// fetchLoop fetches one partition until ctx ends. It continues after every error but a lost offset, since its
// partition would stay unread otherwise.
func (c *Consumer) fetchLoop(ctx context.Context, client *kafka.Client, a *Assignment,
	at topicPartition) error {
	next := a.state[at].fetched.Load()
	f := &fetcher{client: client, topic: at.topic, partition: at.partition, next: next, delivered: next,
		maxBytes: int64(c.cfg.MaxBytes)}
	failures := 0
	pause := func() {
		failures++
		_ = backoff.Sleep(ctx,
			backoff.Policy{Min: 100 * time.Millisecond, Max: 3 * time.Second}.Delay(failures))
	}
	for ctx.Err() == nil {
		batch, err := c.fetchOnce(ctx, f, a)
		switch {
		case errors.Is(err, ErrOffsetLost):
			return err
		case err != nil && ctx.Err() == nil:
			c.metrics.errors.WithLabelValues(at.topic).Inc()
			c.cfg.Logger.Warn("fetch failed", "topic", at.topic, "partition", at.partition, "error", err)
			pause()
		case len(batch.Records) > 0:
			batch.from = f.delivered // covers the offsets of control batches before it
			f.delivered = batch.to
			a.handOver(ctx, batch)
			failures = 0
			if batch.to >= batch.HighWatermark {
				_ = backoff.Sleep(ctx, fetchPause)
			}
		case batch.to > batch.from: // control batches only
			a.state[at].fetched.Store(batch.to)
		case batch.HighWatermark > f.next: // the broker has records and sent none
			pause()
		}
	}
	return nil
}

func (c *Consumer) fetchOnce(ctx context.Context, f *fetcher, a *Assignment) (Batch, error) {
	if f.next < 0 { // nothing is committed: start at the beginning
		first, _, err := f.bounds(ctx)
		if err != nil {
			return Batch{}, err
		}
		f.seek(a, first)
	}
	batch, err := f.fetch(ctx)
	if errors.Is(err, kafka.OffsetOutOfRange) {
		return Batch{}, c.outOfRange(ctx, f, a, err)
	}
	return batch, err
}

// outOfRange compares the offset with what the broker has: a follower that has just become the leader may
// refuse a valid offset for a moment.
func (c *Consumer) outOfRange(ctx context.Context, f *fetcher, a *Assignment, cause error) error {
	first, last, err := f.bounds(ctx)
	if err != nil {
		return err
	}
	if first <= f.next && f.next <= last {
		return cause
	}
	c.metrics.lost.WithLabelValues(f.topic).Inc()
	c.cfg.Logger.Error("the broker does not have the next offset", "topic", f.topic, "partition", f.partition,
		"offset", f.next, "first", first, "last", last, "accept_loss", c.cfg.AcceptLoss)
	if !c.cfg.AcceptLoss {
		return fmt.Errorf("%w: %s/%d wants %d, the broker has %d to %d", ErrOffsetLost, f.topic, f.partition,
			f.next, first, last)
	}
	if first > f.next { // the next batch also covers the offsets that are lost, so that none stays open
		f.next = first
		a.state[topicPartition{f.topic, f.partition}].fetched.Store(first)
		return nil
	}
	f.seek(a, first)
	return nil
}

// seek continues at another offset than the one that was committed.
func (f *fetcher) seek(a *Assignment, offset int64) {
	f.next, f.delivered = offset, offset
	a.seek(topicPartition{f.topic, f.partition}, offset)
}
