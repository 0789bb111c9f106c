package stream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"
	"github.com/segmentio/kafka-go/protocol/listoffsets"
	"github.com/segmentio/kafka-go/protocol/metadata"
	produceapi "github.com/segmentio/kafka-go/protocol/produce"

	"storefront.internal/shared/backoff"
)

// clusterLatency is the time that a broker of a fakeCluster takes for an answer.
const clusterLatency = 5 * time.Millisecond

// fakeCluster is a transport to brokers that may hang. The clock of a synctest bubble runs its latencies.
type fakeCluster struct {
	mu         sync.Mutex
	leaders    []int                          // by partition; noLeader for none
	hangs      map[int]bool                   // brokers that take requests and never answer
	connects   map[int]bool                   // brokers to which even a connection hangs
	late       func(broker int) time.Duration // how long an answer takes; clusterLatency when nil
	handshakes bool                           // a new connection costs one answer more
	idle       map[int]int                    // connections, by broker
	timesOut   bool                           // other replicas do not acknowledge, which a leader says late
	unknown    error                          // of the metadata
	stored     map[string]int
	flushes    map[int]int // that reached the broker, by broker
	largest    map[int]int // records of one flush, by broker, since reset
	asked      map[int]int // requests of any kind, by broker
}

func newFakeCluster(leaders ...int) *fakeCluster {
	return &fakeCluster{leaders: leaders, hangs: map[int]bool{}, connects: map[int]bool{},
		idle: map[int]int{}, stored: map[string]int{}, flushes: map[int]int{}, largest: map[int]int{},
		asked: map[int]int{}}
}

// producer returns a producer whose requests go to the fake.
func (c *fakeCluster) producer(cfg ProducerConfig) *Producer {
	cfg.Topic, cfg.Brokers = "fake", []string{"broker:9092"}
	p := NewProducer(cfg)
	p.client.Transport = c
	return p
}

// set changes the cluster.
func (c *fakeCluster) set(change func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change()
}

// RoundTrip implements kafka.RoundTripper.
func (c *fakeCluster) RoundTrip(ctx context.Context, _ net.Addr, req kafka.Request) (kafka.Response, error) {
	switch req := req.(type) {
	case *metadata.Request:
		return c.metadata()
	case *listoffsets.Request:
		part := req.Topics[0].Partitions[0].Partition
		if _, err := c.reach(ctx, int(part), nil); err != nil {
			return nil, err
		}
		return &listoffsets.Response{Topics: []listoffsets.ResponseTopic{{Topic: "fake",
			Partitions: []listoffsets.ResponsePartition{{Partition: part}}}}}, nil
	case *produceapi.Request:
		return c.produce(ctx, req)
	}
	return nil, fmt.Errorf("unexpected %T", req)
}

func (c *fakeCluster) metadata() (kafka.Response, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.unknown != nil {
		return nil, c.unknown
	}
	res := &metadata.Response{Topics: []metadata.ResponseTopic{{Name: "fake"}}}
	for i, leader := range c.leaders {
		res.Topics[0].Partitions = append(res.Topics[0].Partitions,
			metadata.ResponsePartition{PartitionIndex: int32(i), LeaderID: int32(leader)})
		if leader != noLeader {
			res.Brokers = append(res.Brokers,
				metadata.ResponseBroker{NodeID: int32(leader), Host: "broker", Port: 9092})
		}
	}
	return res, nil
}

// reach sends something to the leader of a partition, and waits for the answer. arrive is called when the
// broker has it.
func (c *fakeCluster) reach(ctx context.Context, part int, arrive func() error) (broker int, err error) {
	c.mu.Lock()
	broker = c.leaders[part]
	hangs, connects := c.hangs[broker], c.connects[broker]
	c.asked[broker]++
	c.mu.Unlock()
	if connects {
		<-ctx.Done()
		return broker, &net.OpError{Op: "dial", Err: ctx.Err()}
	}
	if err := c.connect(ctx, broker); err != nil {
		return broker, err
	}
	if arrive != nil {
		if err := arrive(); err != nil {
			return broker, err
		}
	}
	if hangs {
		<-ctx.Done()
		return broker, &net.OpError{Op: "read", Err: ctx.Err()}
	}
	if c.answer(ctx, broker) != nil {
		return broker, &net.OpError{Op: "read", Err: ctx.Err()}
	}
	c.set(func() { c.idle[broker]++ })
	return broker, nil
}

// connect takes an idle connection, or makes one.
func (c *fakeCluster) connect(ctx context.Context, broker int) error {
	c.mu.Lock()
	idle := c.idle[broker] > 0
	if idle {
		c.idle[broker]--
	}
	c.mu.Unlock()
	if idle || !c.handshakes {
		return nil
	}
	return c.answer(ctx, broker)
}

// answer waits for as long as an answer takes.
func (c *fakeCluster) answer(ctx context.Context, broker int) error {
	took := clusterLatency
	c.set(func() {
		switch {
		case c.timesOut:
			took = 3900 * time.Millisecond // just before the attempt ends
		case c.late != nil:
			took = c.late(broker)
		}
	})
	return backoff.Sleep(ctx, took)
}

func (c *fakeCluster) produce(ctx context.Context, req *produceapi.Request) (kafka.Response, error) {
	part := &req.Topics[0].Partitions[0]
	var values []string
	broker, err := c.reach(ctx, int(part.Partition), func() (err error) {
		values, err = readAll(part.RecordSet.Records)
		c.store(int(part.Partition), values)
		return err
	})
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(values) > 0 {
		c.flushes[broker]++
		c.largest[broker] = max(c.largest[broker], len(values))
	}
	if err != nil {
		return nil, err
	}
	answer := produceapi.ResponsePartition{Partition: part.Partition}
	if c.timesOut {
		answer.ErrorCode = int16(kafka.RequestTimedOut)
	}
	return &produceapi.Response{Topics: []produceapi.ResponseTopic{{Topic: "fake",
		Partitions: []produceapi.ResponsePartition{answer}}}}, nil
}

// store keeps what a broker got that does not hang.
func (c *fakeCluster) store(part int, values []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.hangs[c.leaders[part]] {
		return
	}
	for _, v := range values {
		c.stored[v]++
	}
}

// twice counts the records that are stored more than once, of all.
func (c *fakeCluster) twice() (twice, all int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, n := range c.stored {
		if n > 1 {
			twice++
		}
	}
	return twice, len(c.stored)
}

func readAll(records protocol.RecordReader) (values []string, err error) {
	for {
		rec, err := records.ReadRecord()
		if errors.Is(err, io.EOF) {
			return values, nil
		}
		if err != nil {
			return nil, err
		}
		value, err := protocol.ReadAll(rec.Value)
		if err != nil {
			return nil, err
		}
		values = append(values, string(value))
	}
}

// callers are many that produce one record after the other, each with the deadline of a request.
type callers struct {
	stop context.CancelFunc
	all  sync.WaitGroup

	mu      sync.Mutex
	acked   int
	failed  int
	longest time.Duration // of a call
}

const callDeadline = 4 * time.Second

func startCallers(p *Producer, n int) *callers {
	ctx, cancel := context.WithCancel(context.Background())
	c := &callers{stop: cancel}
	for i := range n {
		c.all.Go(func() {
			for k := 0; ctx.Err() == nil; k++ {
				c.call(p, fmt.Sprintf("%d-%d", i, k))
			}
		})
	}
	return c
}

func (c *callers) call(p *Producer, value string) {
	ctx, cancel := context.WithTimeout(context.Background(), callDeadline)
	defer cancel()
	begun := time.Now()
	outcome, err := p.Produce(ctx, []byte(value))
	if err != nil {
		time.Sleep(50 * time.Millisecond) // a client would wait for longer
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.longest = max(c.longest, time.Since(begun))
	if outcome == Acknowledged {
		c.acked++
	} else {
		c.failed++
	}
}

// during counts what is acknowledged during a time.
func (c *callers) during(d time.Duration) int {
	c.mu.Lock()
	before := c.acked
	c.mu.Unlock()
	time.Sleep(d)
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.acked - before
}

// soFar is what the calls so far came to.
func (c *callers) soFar() (longest time.Duration, failed int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.longest, c.failed
}

func (c *callers) end() {
	c.stop()
	c.all.Wait()
}
