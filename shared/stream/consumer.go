package stream

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/segmentio/kafka-go"
)

// ErrOffsetLost halts a Consumer: the broker no longer has the offset where a partition was to be read on, or never had it. Records may have been lost unread, so an operator decides.
var ErrOffsetLost = errors.New("stream: offset lost")

// ConsumerConfig says what a Consumer reads. Zero values take the defaults named.
type ConsumerConfig struct {
	Brokers             []string
	Security            Security
	Group               string
	Topics              []string
	ClientID            string
	MaxBytes            int           // of one fetch; 1 MiB
	BatchesPerPartition int           // fetched ahead; 2
	AcceptLoss          bool          // an operator's word: go on at the first offset there is where one is lost
	SessionTimeout      time.Duration // 10 s
	HeartbeatInterval   time.Duration // 3 s
	RebalanceTimeout    time.Duration // 10 s; a sink that takes longer to end costs its relay another join, and everybody waits so long for one that died
	StallAfter          time.Duration // 30 s
	CheckEvery          time.Duration // 5 s: stall
	Registerer          prometheus.Registerer
	Logger              *slog.Logger
	Now                 func() time.Time
}

func (c ConsumerConfig) withDefaults() ConsumerConfig {
	def := func(v *time.Duration, d time.Duration) {
		if *v <= 0 {
			*v = d
		}
	}
	def(&c.SessionTimeout, 10*time.Second)
	def(&c.HeartbeatInterval, 3*time.Second)
	def(&c.RebalanceTimeout, 10*time.Second)
	def(&c.StallAfter, 30*time.Second)
	def(&c.CheckEvery, 5*time.Second)
	if c.MaxBytes <= 0 {
		c.MaxBytes = 1 << 20
	}
	if c.BatchesPerPartition <= 0 {
		c.BatchesPerPartition = 2
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}

// Sink stores batches for as long as ctx lives, and marks them with Done. It returns when ctx ends (finishing the transaction at hand, if it is short: Done works until it returns). An error
// that it returns while ctx lives ends the Consumer.
type Sink func(ctx context.Context, a *Assignment) error

// Consumer is one member of a consumer group.
type Consumer struct {
	cfg     ConsumerConfig
	metrics *consumerMetrics
}

// NewConsumer makes a Consumer. It connects in Run.
func NewConsumer(cfg ConsumerConfig) *Consumer {
	cfg = cfg.withDefaults()
	return &Consumer{cfg: cfg, metrics: newConsumerMetrics(cfg.Registerer)}
}

func (c *Consumer) newClient() (*kafka.Client, func()) {
	transport := &kafka.Transport{ClientID: c.cfg.ClientID, DialTimeout: 2 * time.Second, MetadataTTL: time.Second, MetadataTopics: c.cfg.Topics,
		TLS: c.cfg.Security.tls, SASL: c.cfg.Security.sasl}
	return &kafka.Client{Addr: kafka.TCP(c.cfg.Brokers...), Timeout: 10 * time.Second, Transport: transport}, transport.CloseIdleConnections
}

// Run joins the group and calls sink once per generation, on this goroutine and never twice at a time. It returns nil when ctx ends, ErrOffsetLost, ErrStalled, or the sink's error.
func (c *Consumer) Run(ctx context.Context, sink Sink) error {
	stalledAt := map[place]int64{}
	for {
		err := c.runGroup(ctx, sink)
		var stall *stallError
		switch {
		case ctx.Err() != nil && (err == nil || !errors.Is(err, ErrOffsetLost)):
			return nil
		case errors.As(err, &stall):
			c.metrics.rebuilds.Inc()
			c.cfg.Logger.Error("consumer stalled; rebuilding it", "error", err)
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

// runGroup is a member's life from joining to leaving.
func (c *Consumer) runGroup(ctx context.Context, sink Sink) error {
	group, err := kafka.NewConsumerGroup(kafka.ConsumerGroupConfig{
		ID: c.cfg.Group, Brokers: c.cfg.Brokers, Topics: c.cfg.Topics, StartOffset: kafka.FirstOffset,
		Dialer:         &kafka.Dialer{ClientID: c.cfg.ClientID, Timeout: 3 * time.Second, TLS: c.cfg.Security.tls, SASLMechanism: c.cfg.Security.sasl},
		SessionTimeout: c.cfg.SessionTimeout, HeartbeatInterval: c.cfg.HeartbeatInterval, RebalanceTimeout: c.cfg.RebalanceTimeout,
		JoinGroupBackoff: 500 * time.Millisecond, WatchPartitionChanges: true, PartitionWatchInterval: 30 * time.Second,
	})
	if err != nil {
		return fmt.Errorf("stream: consumer group: %w", err)
	}
	defer func() { _ = group.Close() }() // leaves; it has no error to give
	client, closeClient := c.newClient()
	defer closeClient()
	for {
		gen, err := c.join(ctx, group)
		if err != nil || gen == nil {
			return err
		}
		c.metrics.generations.Inc()
		if err := c.runGeneration(ctx, client, gen, sink); err != nil {
			return err
		}
	}
}

// join waits for the next generation; nil when ctx ends. Errors of the group's coordinator are repeated by the group itself, with its back-off. When neither a generation nor an error comes
// for longer than a rebalance can take, the group is stuck.
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
			return nil, &stallError{at: map[place]int64{{topic: "joining the group"}: 0}}
		}
		c.cfg.Logger.Warn("joining the consumer group failed", "group", c.cfg.Group, "error", err)
	}
}

// runGeneration runs fetchers, watch and sink, and returns when all of them have ended; only then the group may go on to the next generation.
func (c *Consumer) runGeneration(ctx context.Context, client *kafka.Client, gen *kafka.Generation, sink Sink) error {
	ctx, cancel := context.WithCancelCause(ctx)
	finished := make(chan struct{})
	defer close(finished)
	defer cancel(nil)
	gen.Start(func(genCtx context.Context) {
		stop := context.AfterFunc(genCtx, func() { cancel(ErrFenced) })
		defer stop()
		<-finished
	})
	a := newAssignment(gen, c.cfg.BatchesPerPartition)
	c.cfg.Logger.Info("joined the consumer group", "group", c.cfg.Group, "generation", gen.ID, "partitions", a.Partitions())
	var fetchers, all sync.WaitGroup
	for _, at := range a.places {
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
	defer cancel(nil) // before the wait, also when the sink panics
	err := sink(ctx, a)
	if cause := context.Cause(ctx); errors.Is(cause, ErrOffsetLost) || errors.Is(cause, ErrStalled) {
		return cause
	}
	if ctx.Err() != nil || err == nil { // the sink of an ended generation has nothing to add
		return nil
	}
	return err
}

// fetchLoop fetches one partition until ctx ends. It goes on after every error but a lost offset, since a fetcher that returns would leave its partition unread.
func (c *Consumer) fetchLoop(ctx context.Context, client *kafka.Client, a *Assignment, at place) error {
	next := a.state[at].fetched.Load()
	f := &fetcher{client: client, topic: at.topic, partition: at.partition, next: next, covered: next, maxBytes: int64(c.cfg.MaxBytes)}
	pause := newBackoff()
	for ctx.Err() == nil {
		batch, err := c.fetchOnce(ctx, f, a)
		switch {
		case errors.Is(err, ErrOffsetLost):
			return err
		case err != nil && ctx.Err() == nil:
			c.metrics.errors.WithLabelValues(at.topic).Inc()
			c.cfg.Logger.Warn("fetch failed", "topic", at.topic, "partition", at.partition, "error", err)
			pause.wait(ctx)
		case len(batch.Records) > 0:
			batch.from = f.covered // also the offsets of control batches that came before
			f.covered = batch.to
			a.deliver(ctx, batch)
			pause.reset()
			if batch.to >= batch.HighWatermark {
				sleep(ctx, fetchRest)
			}
		case batch.to > batch.from: // control batches only
			a.state[at].fetched.Store(batch.to)
		case batch.HighWatermark > f.next: // more is there, and nothing came
			pause.wait(ctx)
		}
	}
	return nil
}

func (c *Consumer) fetchOnce(ctx context.Context, f *fetcher, a *Assignment) (Batch, error) {
	if f.next < 0 { // nothing is committed: from the beginning
		first, _, err := f.bounds(ctx)
		if err != nil {
			return Batch{}, err
		}
		f.moveTo(a, first)
	}
	batch, err := f.fetch(ctx)
	if errors.Is(err, kafka.OffsetOutOfRange) {
		return Batch{}, c.outOfRange(ctx, f, a, err)
	}
	return batch, err
}

// outOfRange asks the broker what it has: a follower that has just become the leader may refuse an offset for a moment.
func (c *Consumer) outOfRange(ctx context.Context, f *fetcher, a *Assignment, refused error) error {
	first, last, err := f.bounds(ctx)
	if err != nil {
		return err
	}
	if first <= f.next && f.next <= last {
		return refused
	}
	c.metrics.lost.WithLabelValues(f.topic).Inc()
	c.cfg.Logger.Error("the broker does not have the next offset", "topic", f.topic, "partition", f.partition,
		"offset", f.next, "first", first, "last", last, "accept_loss", c.cfg.AcceptLoss)
	if !c.cfg.AcceptLoss {
		return fmt.Errorf("%w: %s/%d wants %d, the broker has %d to %d", ErrOffsetLost, f.topic, f.partition, f.next, first, last)
	}
	f.moveTo(a, first)
	return nil
}

// moveTo goes on at another offset than the one that was committed.
func (f *fetcher) moveTo(a *Assignment, offset int64) {
	f.next, f.covered = offset, offset
	a.moveTo(place{f.topic, f.partition}, offset)
}
