package stream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/segmentio/kafka-go"

	"storefront.internal/shared/backoff"
	"storefront.internal/shared/testkit"
)

func newProducer(t *testing.T, cfg ProducerConfig) *Producer {
	t.Helper()
	p := NewProducer(cfg)
	t.Cleanup(func() {
		if err := p.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return p
}

// contents reads every record of a topic.
func contents(t *testing.T, brokers []string, topic string, partitions int) (all [][]string) {
	t.Helper()
	transport := &kafka.Transport{}
	defer transport.CloseIdleConnections()
	client := &kafka.Client{Addr: kafka.TCP(brokers...), Transport: transport}
	for part := range partitions {
		f := &fetcher{client: client, topic: topic, partition: part, maxBytes: 4 << 20}
		first, last, err := f.bounds(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var values []string
		for f.next = first; f.next < last; {
			batch, err := f.fetch(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range batch.Records {
				values = append(values, string(r.Value))
			}
		}
		all = append(all, values)
	}
	return all
}

func TestProducerManyCallers(t *testing.T) {
	t.Parallel()
	brokers, topic := testkit.Kafka(t), testkit.Topic(t, 3)
	p := newProducer(t, ProducerConfig{Brokers: brokers, Topic: topic})
	const callers, each = 256, 20
	var wg sync.WaitGroup
	for c := range callers {
		wg.Go(func() {
			for i := range each {
				if o, err := p.Produce(t.Context(), fmt.Appendf(nil, "%d-%d", c, i)); o != Acknowledged ||
					err != nil {
					t.Errorf("%s %v", o, err)
					return
				}
			}
		})
	}
	wg.Wait()
	seen := map[string]int{}
	for part, values := range contents(t, brokers, topic, 3) {
		if len(values) == 0 {
			t.Errorf("partition %d has no records", part)
		}
		for _, v := range values {
			seen[v]++
		}
	}
	if len(seen) != callers*each {
		t.Fatalf("%d of %d records are there", len(seen), callers*each)
	}
}

// heldProducer returns a producer of one flush at a time, and the gate that holds its requests to the broker.
// Its first flush is in flight, so whatever is produced waits in the queue until the gate opens.
func heldProducer(t *testing.T, cfg ProducerConfig) (*Producer, *gate) {
	t.Helper()
	w := newWire(t, cfg.Brokers[0])
	cfg.InFlight, cfg.AttemptTimeout, cfg.HungAfter = 1, time.Minute, time.Minute
	p := through(t, w, cfg)
	for o := Refused; o != Acknowledged; { // connects
		o, _ = p.Produce(t.Context(), []byte("first"))
	}
	w.requests.close()
	done := make(chan struct{})
	go func() {
		defer close(done)
		if o, err := p.Produce(context.Background(), []byte("held")); o != Acknowledged {
			t.Errorf("%s %v", o, err)
		}
	}()
	t.Cleanup(func() { w.requests.open(); <-done })
	await(t, "the held flush is in flight", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return len(p.parts.list) > 0 && p.parts.list[0].flushes == 1 && p.queue.first == nil
	})
	return p, &w.requests
}

// awaitQueued waits until n records are queued.
func awaitQueued(t *testing.T, p *Producer, n int) {
	t.Helper()
	await(t, fmt.Sprintf("%d records are queued", n), func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		queued := 0
		for rec := p.queue.first; rec != nil; rec = rec.next {
			queued++
		}
		return queued >= n
	})
}

// await polls a condition until it holds; the test's deadline bounds it.
func await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for !holds() {
		if backoff.Sleep(t.Context(), time.Millisecond) != nil {
			t.Fatalf("in vain: %s", what)
		}
	}
}

// produceQueued starts one call for each value, in their order, and waits until all are queued.
func produceQueued(t *testing.T, p *Producer, values ...string) (wait func()) {
	t.Helper()
	var wg sync.WaitGroup
	for i, value := range values {
		wg.Go(func() {
			if o, err := p.Produce(t.Context(), []byte(value)); o != Acknowledged {
				t.Errorf("%s %v", o, err)
			}
		})
		awaitQueued(t, p, i+1)
	}
	return wg.Wait
}

func TestProducerKeepsOrderWithinAFlush(t *testing.T) {
	t.Parallel()
	brokers, topic := testkit.Kafka(t), testkit.Topic(t, 1)
	p, requests := heldProducer(t, ProducerConfig{Brokers: brokers, Topic: topic})
	var want []string
	for i := range 50 {
		want = append(want, fmt.Sprint(i))
	}
	wait := produceQueued(t, p, want...)
	requests.open()
	wait()
	got := contents(t, brokers, topic, 1)[0]
	if got = got[len(got)-50:]; strings.Join(got, ",") != strings.Join(want, ",") {
		t.Errorf("got %v", got)
	}
}

// withoutDone is a context whose Done must not be called.
type withoutDone struct{ context.Context }

func (withoutDone) Done() <-chan struct{} { panic("Done was called") }

func TestProducerNeverSendsARefusedRecord(t *testing.T) {
	t.Parallel()
	t.Run("by Done", func(t *testing.T) {
		t.Parallel()
		neverSendsARefusedRecord(t, 0)
	})
	t.Run("by looking", func(t *testing.T) {
		t.Parallel()
		neverSendsARefusedRecord(t, 10*time.Millisecond)
	})
}

func neverSendsARefusedRecord(t *testing.T, lookEvery time.Duration) {
	brokers, topic := testkit.Kafka(t), testkit.Topic(t, 1)
	p, requests := heldProducer(t, ProducerConfig{Brokers: brokers, Topic: topic, LookEvery: lookEvery})
	ctx, cancel := context.WithCancel(t.Context())
	waiting := ctx
	if lookEvery > 0 {
		waiting = withoutDone{ctx}
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		o, err := p.Produce(waiting, []byte("given up"))
		if o != Refused || !errors.Is(err, context.Canceled) {
			t.Errorf("%s %v", o, err)
		}
	})
	awaitQueued(t, p, 1)
	cancel()
	wg.Wait()
	requests.open()
	if o, err := p.Produce(t.Context(), []byte("kept")); o != Acknowledged {
		t.Fatal(err)
	}
	if got := contents(t, brokers, topic, 1)[0]; got[len(got)-1] != "kept" ||
		slices.Contains(got, "given up") {
		t.Errorf("got %v", got)
	}
	if o, _ := p.Produce(ctx, []byte("late")); o != Refused {
		t.Errorf("an ended context: %s", o)
	}
}

func TestProducerSplitsWhatTheBrokerFindsTooLarge(t *testing.T) {
	t.Parallel()
	brokers, topic := testkit.Kafka(t), testkit.Topic(t, 1)
	p, requests := heldProducer(t, ProducerConfig{Brokers: brokers, Topic: topic, MaxBatchBytes: 4 << 20})
	if o, err := p.Produce(t.Context(), make([]byte, 5<<20)); o != Refused || !errors.Is(err, ErrTooLarge) {
		t.Fatalf("too large for a flush: %s %v", o, err)
	}
	var large []string
	for i := range 8 {
		large = append(large, strings.Repeat(fmt.Sprint(i), 400_000))
	}
	wait := produceQueued(t, p, large...)
	requests.open()
	wait()
	got := 0
	for _, value := range contents(t, brokers, topic, 1)[0] {
		if len(value) == 400_000 {
			got++
		}
	}
	if got != 8 {
		t.Errorf("%d records", got)
	}
	if o, err := p.Produce(t.Context(), make([]byte, 2<<20)); o != Unknown || !errors.Is(err, ErrTooLarge) {
		t.Fatalf("too large for the broker: %s %v", o, err)
	}
}

func TestProducerRefusesWhenFull(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0") // connects, and no answer comes
	if err != nil {
		t.Fatal(err)
	}
	registry := prometheus.NewRegistry()
	p := newProducer(t, ProducerConfig{Brokers: []string{silent.Addr().String()}, Topic: "none",
		MaxPendingBytes: 2000, Registerer: registry,
		AttemptTimeout: time.Minute, HungAfter: time.Minute})
	t.Cleanup(func() { silent.Close() })
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { _, _ = p.Produce(ctx, make([]byte, 1500)) })
	awaitQueued(t, p, 1)
	if o, err := p.Produce(t.Context(), make([]byte, 1000)); o != Refused || !errors.Is(err, ErrFull) {
		t.Errorf("%s %v", o, err)
	}
	cancel()
	wg.Wait()
	want := strings.NewReader(`# HELP storefront_stream_produce_pending_bytes Bytes of records that wait for a flush or for its acknowledgement.
# TYPE storefront_stream_produce_pending_bytes gauge
storefront_stream_produce_pending_bytes{topic="none"} 0
`)
	if err := testutil.GatherAndCompare(registry, want,
		"storefront_stream_produce_pending_bytes"); err != nil {
		t.Error(err)
	}
}

func TestProducerWithoutBroker(t *testing.T) {
	t.Parallel()
	p := newProducer(t, ProducerConfig{Brokers: []string{"127.0.0.1:1"}, Topic: "none",
		AttemptTimeout: 300 * time.Millisecond})
	for range 3 {
		if o, err := p.Produce(t.Context(), []byte("x")); o != Refused || err == nil {
			t.Errorf("%s %v", o, err)
		}
	}
	if err := p.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if o, err := p.Produce(t.Context(), []byte("x")); o != Refused || !errors.Is(err, ErrClosed) {
		t.Errorf("%s %v", o, err)
	}
}

func TestProducerMissingTopic(t *testing.T) {
	t.Parallel()
	p := newProducer(t, ProducerConfig{Brokers: testkit.Kafka(t), Topic: testkit.Name("missing-")})
	if o, err := p.Produce(t.Context(), []byte("x")); o != Refused ||
		!errors.Is(err, kafka.UnknownTopicOrPartition) {
		t.Errorf("%s %v", o, err)
	}
}

// gate holds whatever passes through it while it is closed.
type gate struct {
	mu     sync.Mutex
	opened chan struct{} // nil when open
}

func (g *gate) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.opened = make(chan struct{})
}

func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.opened != nil {
		close(g.opened)
		g.opened = nil
	}
}

func (g *gate) pass() {
	g.mu.Lock()
	opened := g.opened
	g.mu.Unlock()
	if opened != nil {
		<-opened
	}
}

// wire is a proxy before the broker. It can hold requests, and lose answers or requests.
type wire struct {
	net.Listener
	target      string
	requests    gate
	loseAnswers atomic.Bool
	stall       atomic.Bool
	mu          sync.Mutex
	conns       []net.Conn
}

func newWire(t *testing.T, target string) *wire {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{Listener: l, target: target}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go w.join(c)
		}
	}()
	t.Cleanup(func() { w.requests.open(); l.Close(); w.cut() })
	return w
}

func (w *wire) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.conns {
		c.Close()
	}
	w.conns = nil
}

func (w *wire) join(c net.Conn) {
	b, err := net.Dial("tcp", w.target)
	if err != nil {
		c.Close()
		return
	}
	w.mu.Lock()
	w.conns = append(w.conns, c, b)
	w.mu.Unlock()
	go w.pass(b, c, &w.stall, &w.requests)
	w.pass(c, b, &w.loseAnswers, &gate{})
}

func (w *wire) pass(dst io.WriteCloser, src io.Reader, swallow *atomic.Bool, hold *gate) {
	defer dst.Close()
	buf := make([]byte, 64<<10)
	for {
		n, err := src.Read(buf)
		hold.pass()
		if n > 0 && !swallow.Load() {
			if _, err := dst.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// through makes a producer whose connections to the leaders of partitions go through the wire.
func through(t *testing.T, w *wire, cfg ProducerConfig) *Producer {
	t.Helper()
	p := newProducer(t, cfg)
	p.transport.Dial = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, w.Addr().String())
	}
	return p
}
