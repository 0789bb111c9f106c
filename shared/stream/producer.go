package stream

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/segmentio/kafka-go"

	"storefront.internal/shared/tracing"
)

// ProducerConfig configures a Producer. Zero values take the defaults named.
type ProducerConfig struct {
	Brokers         []string
	Security        Security
	Topic           string
	MaxBatchBytes   int           // of one flush; 900,000, under the broker's default of 1,048,588
	MaxPendingBytes int           // queued and in flight; DefaultPendingBytes
	InFlight        int           // concurrent flushes; 4, an equal share per leader, and one per partition
	Linger          time.Duration // longest wait of a record for others while a flush is in flight; 3 ms
	GatherBytes     int           // queued bytes that end the wait; 256 KiB
	AttemptTimeout  time.Duration // of one flush; 4 s, as long as a caller waits
	HungAfter       time.Duration // without a sign of life of a leader, which then counts as hung; 1.8 s
	ClientID        string
	Group           Group  // the partitions that it prefers; all
	ContentType     string // header content-type of each record; application/json
	Compression     Codec  // none
	// LookEvery is how often a waiting caller looks whether its context has ended, without its Done, which
	// would start a timer for each record. 0: it uses Done and returns at once.
	LookEvery  time.Duration
	Registerer prometheus.Registerer
	Now        func() time.Time
}

// DefaultPendingBytes is how many bytes a producer holds that is not told otherwise.
const DefaultPendingBytes = 64 << 20

func (c ProducerConfig) withDefaults() ProducerConfig {
	c.MaxBatchBytes = cmp.Or(c.MaxBatchBytes, 900_000)
	c.MaxPendingBytes = cmp.Or(c.MaxPendingBytes, DefaultPendingBytes)
	c.InFlight = cmp.Or(c.InFlight, 4)
	c.GatherBytes = cmp.Or(c.GatherBytes, 256<<10)
	c.Linger = cmp.Or(c.Linger, 3*time.Millisecond)
	c.AttemptTimeout = cmp.Or(c.AttemptTimeout, 4*time.Second)
	c.HungAfter = cmp.Or(c.HungAfter, 1800*time.Millisecond)
	c.ContentType = cmp.Or(c.ContentType, "application/json")
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}

// Group is one of several parts of a topic's partitions. A producer writes to the partitions of its group
// while one of their leaders answers, and to the others else.
type Group struct{ Index, Of int }

// has reports whether a partition of so many is in the group. Where there are fewer partitions than groups,
// groups share them.
func (g Group) has(partition, of int) bool {
	return g.Of == 0 || partition%g.Of == g.Index%min(g.Of, of)
}

// traceHeader is the record header with the W3C traceparent of Produce's context.
const traceHeader = "traceparent"

const (
	recordOverhead = 64  // upper bound for a record's lengths, time and offset
	batchOverhead  = 128 // upper bound for the header of a batch
)

// connectTimeout leaves time for a second address within an attempt.
const connectTimeout = time.Second

// Producer writes records to one topic. It is safe for concurrent use.
//
// A flush goes to one partition, and the partitions take turns. Records that arrive while a flush is in
// flight gather for the next, since the work of a broker is per flush rather than per record: an idle
// producer sends at once, a busy one batches. A slow flush does not block the others: they start after
// Linger, or when GatherBytes wait. A leader that does not answer, or much later than others, holds its share
// of the flushes only: others get what comes after them, until a probe of it is answered. When all leaders
// are slow, their answers are waited for. When no leader answers, records are refused at once.
type Producer struct {
	cfg       ProducerConfig
	client    *kafka.Client
	transport *kafka.Transport
	metrics   *producerMetrics
	headers   []kafka.Header
	work      sync.WaitGroup  // flushes and refreshes
	attempts  context.Context // ends when Close gives up
	giveUp    context.CancelFunc

	mu          sync.Mutex
	queue       recordQueue
	waiting     int // bytes of the queue
	bytes       int // of all records that are not settled
	limit       int // bytes of a flush; lower than MaxBatchBytes after the broker found one too large
	lingerTimer *time.Timer
	lingerArmed bool
	parts       partitions
	resends     resends
	looks       *ticks // nil: callers wait for their contexts
	refreshing  bool
	lookupBegan time.Time // the first look-up of the partitions
	closed      bool
	idle        chan struct{} // closed when nothing is left after Close
}

// queuedRecord is one record on its way.
type queuedRecord struct {
	value     []byte
	trace     string        // W3C traceparent, for a header of the record; "" for none
	size      int           // bytes that it takes in a batch, at most
	since     time.Time     // in the queue
	queued    bool          // not with a flush yet; guarded by the producer's mutex, as its neighbours are
	previous  *queuedRecord // in the queue
	next      *queuedRecord
	abandoned atomic.Bool // its caller has gone while a flush had it

	// Written before done is closed, read after.
	outcome Outcome
	err     error
	done    chan struct{}
}

// NewProducer makes a Producer. It connects when the first record comes.
func NewProducer(cfg ProducerConfig) *Producer {
	cfg = cfg.withDefaults()
	transport := newTransport(cfg.Security, cfg.ClientID, cfg.Topic)
	transport.DialTimeout, transport.IdleTimeout = cfg.AttemptTimeout, time.Minute
	transport.Dial = (&net.Dialer{Timeout: connectTimeout}).DialContext
	p := &Producer{
		cfg: cfg, transport: transport, metrics: newProducerMetrics(cfg.Registerer, cfg.Topic),
		limit:   cfg.MaxBatchBytes,
		parts:   partitions{now: cfg.Now, limit: cfg.InFlight, hungAfter: cfg.HungAfter, group: cfg.Group},
		resends: newResends(), idle: make(chan struct{}),
		client: &kafka.Client{Addr: kafka.TCP(cfg.Brokers...), Timeout: cfg.AttemptTimeout,
			Transport: transport},
		headers: []kafka.Header{{Key: "content-type", Value: []byte(cfg.ContentType)}},
	}
	p.attempts, p.giveUp = context.WithCancel(context.Background())
	p.lingerTimer = time.AfterFunc(time.Hour, p.onLinger)
	p.lingerTimer.Stop()
	if cfg.LookEvery > 0 {
		p.looks = &ticks{every: cfg.LookEvery}
	}
	return p
}

// Produce hands one record over and waits for the answer of all in-sync replicas, or for ctx. The error is
// nil exactly when the outcome is Acknowledged; otherwise value must never be written to or reused, since the
// transport may still read it. A flush that fails, or is late while another leader answers, is tried once
// more on another partition while its callers wait.
func (p *Producer) Produce(ctx context.Context, value []byte) (Outcome, error) {
	outcome, err := p.produce(ctx, value)
	p.metrics.outcomes[outcome].Inc()
	return outcome, err
}

func (p *Producer) produce(ctx context.Context, value []byte) (Outcome, error) {
	if ctx.Err() != nil {
		return Refused, context.Cause(ctx)
	}
	rec := &queuedRecord{value: value, size: len(value) + recordOverhead + len(p.cfg.ContentType),
		done: make(chan struct{})}
	if rec.trace = tracing.TraceparentOf(ctx); rec.trace != "" {
		rec.size += len(traceHeader) + len(rec.trace) + 2*binary.MaxVarintLen32
	}
	if err := p.enqueue(rec); err != nil {
		return Refused, err
	}
	if p.looks != nil {
		return p.awaitLooking(ctx, rec)
	}
	select {
	case <-rec.done:
		return rec.outcome, rec.err
	case <-ctx.Done():
		return p.abandon(rec, context.Cause(ctx))
	}
}

// awaitLooking waits for the answer, and looks at the context now and then.
func (p *Producer) awaitLooking(ctx context.Context, rec *queuedRecord) (Outcome, error) {
	for {
		select {
		case <-rec.done:
			return rec.outcome, rec.err
		case <-p.looks.next():
			if ctx.Err() != nil {
				return p.abandon(rec, context.Cause(ctx))
			}
		}
	}
}

func (p *Producer) enqueue(rec *queuedRecord) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.closed:
		return ErrClosed
	case rec.size+batchOverhead > p.cfg.MaxBatchBytes:
		return ErrTooLarge
	case p.bytes+rec.size > p.cfg.MaxPendingBytes:
		return ErrFull
	}
	p.account(rec.size)
	rec.since = p.cfg.Now()
	p.queue.push(rec)
	p.waiting += rec.size
	p.dispatch()
	return nil
}

// abandon ends the wait of a caller whose context ended. A record that is still in the queue is never sent.
func (p *Producer) abandon(rec *queuedRecord, cause error) (Outcome, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-rec.done: // the answer came at the same moment
		return rec.outcome, rec.err
	default:
	}
	if !rec.queued {
		rec.abandoned.Store(true)
		return Unknown, cause
	}
	p.remove(rec)
	p.account(-rec.size)
	return Refused, cause
}

// remove takes a record out of the queue. The mutex is held.
func (p *Producer) remove(rec *queuedRecord) {
	p.queue.remove(rec)
	p.waiting -= rec.size
}

// pop takes the first record out of the queue. The mutex is held.
func (p *Producer) pop() *queuedRecord {
	rec := p.queue.first
	p.remove(rec)
	return rec
}

// account adds bytes, or subtracts them. The mutex is held.
func (p *Producer) account(n int) {
	p.bytes += n
	p.metrics.pending.Add(float64(n)) // to which other producers of the topic add
	p.checkIdle()
}

// checkIdle wakes Close when nothing is left. The mutex is held.
func (p *Producer) checkIdle() {
	if !p.closed || p.bytes > 0 {
		return
	}
	select {
	case <-p.idle:
	default:
		close(p.idle)
	}
}

// Close takes no more records and waits for the outcomes of those that it has. When ctx ends it refuses what
// is still in the queue, and ends the attempts. It may be called more than once.
func (p *Producer) Close(ctx context.Context) error {
	p.mu.Lock()
	p.closed = true
	p.checkIdle()
	p.mu.Unlock()
	var err error
	select {
	case <-p.idle:
	case <-ctx.Done():
		err = fmt.Errorf("stream: close: %w", context.Cause(ctx))
		p.mu.Lock()
		p.refuseQueue(errors.Join(ErrClosed, err))
		p.mu.Unlock()
		p.giveUp()
	}
	p.lingerTimer.Stop()
	p.work.Wait() // an attempt ends by its own timeout
	p.giveUp()
	p.transport.CloseIdleConnections()
	return err
}

// refuseQueue settles every queued record as Refused. The mutex is held.
func (p *Producer) refuseQueue(err error) {
	for p.queue.first != nil {
		p.settle(p.pop(), Refused, err)
	}
}

// settle tells the caller the outcome. The mutex is held.
func (p *Producer) settle(rec *queuedRecord, outcome Outcome, err error) {
	rec.outcome, rec.err = outcome, err
	close(rec.done)
	p.account(-rec.size)
}
