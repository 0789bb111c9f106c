package stream

import (
	"container/list"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/segmentio/kafka-go"

	"storefront.internal/shared/tracing"
)

// ProducerConfig says where a Producer writes and what it may use. Zero values take the defaults named.
type ProducerConfig struct {
	Brokers         []string
	Security        Security
	Topic           string
	MaxBatchBytes   int           // of one flush; 900,000, under the broker's default of 1,048,588
	MaxPendingBytes int           // queued and in flight; 64 MiB
	InFlight        int           // flushes at once over all partitions; 4, and one per partition
	Linger          time.Duration // longest a record waits for others while a flush is in flight; 3 ms. An idle producer never waits
	GatherBytes     int           // that wait for no more; 256 KiB
	AttemptTimeout  time.Duration // of one flush; 1.8 s, so that two fit into a caller's 4 s
	ClientID        string
	ContentType     string // header content-type of each record; application/json
	Compression     Codec  // none
	Registerer      prometheus.Registerer
	Now             func() time.Time
}

func (c ProducerConfig) withDefaults() ProducerConfig {
	def := func(v *int, d int) {
		if *v <= 0 {
			*v = d
		}
	}
	def(&c.MaxBatchBytes, 900_000)
	def(&c.MaxPendingBytes, 64<<20)
	def(&c.InFlight, 4)
	def(&c.GatherBytes, 256<<10)
	if c.Linger <= 0 {
		c.Linger = 3 * time.Millisecond
	}
	if c.AttemptTimeout <= 0 {
		c.AttemptTimeout = 1800 * time.Millisecond
	}
	if c.ContentType == "" {
		c.ContentType = "application/json"
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}

// traceHeader is the record's header that carries on the W3C traceparent of Produce's context.
const traceHeader = "traceparent"

const (
	recordOverhead = 64  // more than a record's lengths, time and offset take
	batchOverhead  = 128 // more than the head of a batch takes
)

// Producer writes records to one topic. A flush goes to one partition, the partitions take turns, and what arrives while a flush is in flight makes the next one: an idle producer sends at
// once, a busy one gathers, since a broker's work is per flush rather than per record. A flush that takes long holds nobody up: behind it others start after a short while, or when enough
// has gathered. It is safe for use by many goroutines.
type Producer struct {
	cfg       ProducerConfig
	client    *kafka.Client
	transport *kafka.Transport
	metrics   *producerMetrics
	headers   []kafka.Header
	attempts  atomic.Uint64  // numbers them
	work      sync.WaitGroup // flushes and look-ups

	mu       sync.Mutex
	queue    list.List // of *pending
	waiting  int       // bytes of the queue
	gather   *time.Timer
	armed    bool // gather runs
	bytes    int  // of all records that are not settled
	limit    int  // bytes of a flush; shrinks when the broker finds one too large
	inFlight int
	parts    partitions
	looking  bool
	closed   bool
	idle     chan struct{} // closed when nothing is left after Close
}

// NewProducer makes a Producer. It connects when the first record comes.
func NewProducer(cfg ProducerConfig) *Producer {
	cfg = cfg.withDefaults()
	transport := &kafka.Transport{
		ClientID: cfg.ClientID, DialTimeout: time.Second, MetadataTTL: time.Second, MetadataTopics: []string{cfg.Topic}, IdleTimeout: time.Minute,
		TLS: cfg.Security.tls, SASL: cfg.Security.sasl,
	}
	p := &Producer{
		cfg: cfg, transport: transport, metrics: newProducerMetrics(cfg.Registerer, cfg.Topic), limit: cfg.MaxBatchBytes, idle: make(chan struct{}),
		client:  &kafka.Client{Addr: kafka.TCP(cfg.Brokers...), Timeout: cfg.AttemptTimeout, Transport: transport},
		headers: []kafka.Header{{Key: "content-type", Value: []byte(cfg.ContentType)}},
	}
	p.attempts.Store(firstAttempt)
	p.gather = time.AfterFunc(time.Hour, p.gathered)
	p.gather.Stop()
	return p
}

// Produce hands one record over and waits for the answer of all in-sync replicas, or for ctx. The error is nil exactly when the outcome is Acknowledged; otherwise value must never be written
// to or reused, since the transport may still read it. A flush that fails is tried once more on another partition while its callers wait.
func (p *Producer) Produce(ctx context.Context, value []byte) (Outcome, error) {
	outcome, err := p.produce(ctx, value)
	p.metrics.outcomes[outcome].Inc()
	return outcome, err
}

func (p *Producer) produce(ctx context.Context, value []byte) (Outcome, error) {
	if ctx.Err() != nil {
		return Refused, context.Cause(ctx)
	}
	rec := &pending{value: value, size: len(value) + recordOverhead + len(p.cfg.ContentType), done: make(chan struct{})}
	if rec.trace = tracing.TraceparentOf(ctx); rec.trace != "" {
		rec.size += len(traceHeader) + len(rec.trace) + 2*binary.MaxVarintLen32
	}
	if err := p.enqueue(rec); err != nil {
		return Refused, err
	}
	select {
	case <-rec.done:
		return rec.outcome, rec.err
	case <-ctx.Done():
		return p.leave(rec, context.Cause(ctx))
	}
}

func (p *Producer) enqueue(rec *pending) error {
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
	rec.element = p.queue.PushBack(rec)
	p.waiting += rec.size
	p.dispatch(rec.since)
	return nil
}

// leave ends the wait of a caller whose context ended.
func (p *Producer) leave(rec *pending, cause error) (Outcome, error) {
	for {
		s := rec.state.Load()
		if s == queued && rec.state.CompareAndSwap(queued, cancelled) {
			p.remove(rec)
			if rec.unsure.Load() {
				return Unknown, cause
			}
			return Refused, cause
		}
		if s >= firstAttempt && rec.state.CompareAndSwap(s, abandoned) {
			select {
			case <-rec.done: // the answer came in the same moment
				return rec.outcome, rec.err
			default:
				return Unknown, cause
			}
		}
	}
}

// remove forgets a record that its caller cancelled.
func (p *Producer) remove(rec *pending) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if rec.element != nil {
		p.queue.Remove(rec.element)
		rec.element = nil
		p.waiting -= rec.size
	}
	p.account(-rec.size)
}

// account counts bytes in or out. The mutex is held.
func (p *Producer) account(n int) {
	p.bytes += n
	p.metrics.pending.Set(float64(p.bytes))
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

// Close takes no more records, waits for the answers to those that are there until ctx ends, and refuses what was not sent by then. It may be called more than once.
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
	}
	p.gather.Stop()
	p.work.Wait() // an attempt ends by its own time limit
	p.transport.CloseIdleConnections()
	return err
}

// refuseQueue gives every queued record back to its caller. The mutex is held.
func (p *Producer) refuseQueue(err error) {
	attempt := p.attempts.Add(1)
	for p.queue.Len() > 0 {
		rec := p.pop()
		if outcome, mine := rec.verdict(attempt, Refused); mine {
			p.settle(rec, outcome, err)
		}
	}
}

// pop takes the first record out of the queue. The mutex is held.
func (p *Producer) pop() *pending {
	rec := p.queue.Remove(p.queue.Front()).(*pending)
	rec.element = nil
	p.waiting -= rec.size
	return rec
}

// settle tells the caller. The mutex is held.
func (p *Producer) settle(rec *pending, outcome Outcome, err error) {
	if outcome == Acknowledged {
		err = nil
	} else if err == nil {
		err = errRevoked
	}
	rec.outcome, rec.err = outcome, err
	close(rec.done)
	p.account(-rec.size)
}
