package stream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"

	"storefront.internal/shared/testkit"
	"storefront.internal/shared/tracing"
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
				if o, err := p.Produce(t.Context(), fmt.Appendf(nil, "%d-%d", c, i)); o != Acknowledged || err != nil {
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
			t.Errorf("partition %d took no turn", part)
		}
		for _, v := range values {
			seen[v]++
		}
	}
	if len(seen) != callers*each {
		t.Fatalf("%d of %d records are there", len(seen), callers*each)
	}
}

func TestProducerKeepsOrderWithinAFlush(t *testing.T) {
	t.Parallel()
	brokers, topic := testkit.Kafka(t), testkit.Topic(t, 1)
	p := newProducer(t, ProducerConfig{Brokers: brokers, Topic: topic})
	if o, err := p.Produce(t.Context(), []byte("first")); o != Acknowledged {
		t.Fatal(err)
	}
	p.mu.Lock()
	p.inFlight = p.cfg.InFlight // as if each flush were under way
	p.mu.Unlock()
	var wg sync.WaitGroup
	var want []string
	for i := range 50 {
		want = append(want, fmt.Sprint(i))
		wg.Go(func() { _, _ = p.Produce(t.Context(), []byte(fmt.Sprint(i))) })
		waitQueue(p, i+1)
	}
	p.mu.Lock()
	p.inFlight = 0
	p.dispatch(time.Now())
	p.mu.Unlock()
	wg.Wait()
	got := contents(t, brokers, topic, 1)[0][1:]
	if strings.Join(got, ",") != strings.Join(want, ",") {
		t.Errorf("got %v", got)
	}
}

// waitQueue spins until n records are queued.
func waitQueue(p *Producer, n int) {
	for {
		p.mu.Lock()
		l := p.queue.Len()
		p.mu.Unlock()
		if l >= n {
			return
		}
	}
}

func TestProducerNeverSendsWhatItsCallerGaveUp(t *testing.T) {
	t.Parallel()
	brokers, topic := testkit.Kafka(t), testkit.Topic(t, 1)
	p := newProducer(t, ProducerConfig{Brokers: brokers, Topic: topic})
	p.mu.Lock()
	p.inFlight = p.cfg.InFlight
	p.mu.Unlock()
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		if o, err := p.Produce(ctx, []byte("given up")); o != Refused || !errors.Is(err, context.Canceled) {
			t.Errorf("%s %v", o, err)
		}
	})
	waitQueue(p, 1)
	cancel()
	wg.Wait()
	p.mu.Lock()
	p.inFlight = 0
	p.mu.Unlock()
	if o, err := p.Produce(t.Context(), []byte("kept")); o != Acknowledged {
		t.Fatal(err)
	}
	if got := contents(t, brokers, topic, 1)[0]; len(got) != 1 || got[0] != "kept" {
		t.Errorf("got %v", got)
	}
	if o, _ := p.Produce(ctx, []byte("late")); o != Refused {
		t.Errorf("an ended context: %s", o)
	}
}

func TestProducerSplitsWhatTheBrokerFindsTooLarge(t *testing.T) {
	t.Parallel()
	brokers, topic := testkit.Kafka(t), testkit.Topic(t, 1)
	p := newProducer(t, ProducerConfig{Brokers: brokers, Topic: topic, MaxBatchBytes: 4 << 20})
	if o, err := p.Produce(t.Context(), make([]byte, 2<<20)); o != Refused || !errors.Is(err, ErrTooLarge) {
		t.Fatalf("too large for the broker: %s %v", o, err)
	}
	if o, err := p.Produce(t.Context(), make([]byte, 5<<20)); o != Refused || !errors.Is(err, ErrTooLarge) {
		t.Fatalf("too large for a flush: %s %v", o, err)
	}
	p.mu.Lock()
	p.inFlight = p.cfg.InFlight
	p.mu.Unlock()
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			value := []byte(strings.Repeat(fmt.Sprint(i), 400_000))
			if o, err := p.Produce(t.Context(), value); o != Acknowledged {
				t.Errorf("%s %v", o, err)
			}
		})
	}
	waitQueue(p, 8)
	p.mu.Lock()
	p.inFlight = 0
	p.dispatch(time.Now())
	p.mu.Unlock()
	wg.Wait()
	if got := contents(t, brokers, topic, 1)[0]; len(got) != 8 {
		t.Errorf("%d records", len(got))
	}
}

func TestProducerRefusesWhenFull(t *testing.T) {
	t.Parallel()
	p := newProducer(t, ProducerConfig{Brokers: []string{"127.0.0.1:1"}, Topic: "none", MaxPendingBytes: 2000})
	p.mu.Lock()
	p.looking = true // nothing moves
	p.mu.Unlock()
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { _, _ = p.Produce(ctx, make([]byte, 1500)) })
	waitQueue(p, 1)
	if o, err := p.Produce(t.Context(), make([]byte, 1000)); o != Refused || !errors.Is(err, ErrFull) {
		t.Errorf("%s %v", o, err)
	}
	cancel()
	wg.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.bytes != 0 {
		t.Errorf("%d bytes are left", p.bytes)
	}
}

func TestProducerWithoutBroker(t *testing.T) {
	t.Parallel()
	p := newProducer(t, ProducerConfig{Brokers: []string{"127.0.0.1:1"}, Topic: "none", AttemptTimeout: 300 * time.Millisecond})
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
	if o, err := p.Produce(t.Context(), []byte("x")); o != Refused || !errors.Is(err, kafka.UnknownTopicOrPartition) {
		t.Errorf("%s %v", o, err)
	}
}

// wire stands before the broker and may swallow its answers or its requests.
type wire struct {
	net.Listener
	target      string
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
	t.Cleanup(func() { l.Close(); w.cut() })
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
	go w.pass(b, c, &w.stall)
	w.pass(c, b, &w.loseAnswers)
}

func (w *wire) pass(dst io.WriteCloser, src io.Reader, swallow *atomic.Bool) {
	defer dst.Close()
	buf := make([]byte, 64<<10)
	for {
		n, err := src.Read(buf)
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

// through makes a producer whose connections to partitions' leaders all go through the wire.
func through(t *testing.T, w *wire, cfg ProducerConfig) *Producer {
	t.Helper()
	p := newProducer(t, cfg)
	p.transport.Dial = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, w.Addr().String())
	}
	return p
}

func TestProducerUnknownWhenTheAnswerIsLost(t *testing.T) {
	t.Parallel()
	brokers, topic := testkit.Kafka(t), testkit.Topic(t, 2)
	w := newWire(t, brokers[0])
	p := through(t, w, ProducerConfig{Brokers: brokers, Topic: topic, AttemptTimeout: 500 * time.Millisecond})
	for o := Refused; o != Acknowledged; { // a slow machine may take longer than an attempt to connect
		o, _ = p.Produce(t.Context(), []byte("before"))
	}
	w.loseAnswers.Store(true)
	if o, err := p.Produce(t.Context(), []byte("lost")); o != Unknown || err == nil {
		t.Errorf("%s %v", o, err)
	}
	w.cut()
	w.loseAnswers.Store(false)
	for {
		if o, _ := p.Produce(t.Context(), []byte("after")); o == Acknowledged {
			break
		}
	}
	lost := 0
	for _, values := range contents(t, brokers, topic, 2) {
		for _, v := range values {
			if v == "lost" {
				lost++
			}
		}
	}
	if lost == 0 {
		t.Error("the record with the lost answer is not there; the test shows nothing")
	}
}

func TestProducerStalledBrokerAndCutConnections(t *testing.T) {
	t.Parallel()
	brokers, topic := testkit.Kafka(t), testkit.Topic(t, 3)
	w := newWire(t, brokers[0])
	p := through(t, w, ProducerConfig{Brokers: brokers, Topic: topic, AttemptTimeout: 200 * time.Millisecond})
	var mu sync.Mutex
	told := map[string]Outcome{}
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for c := range 32 {
		wg.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				ctx, cancel := context.WithTimeout(t.Context(), 350*time.Millisecond)
				id := fmt.Sprintf("%d-%d", c, i)
				o, _ := p.Produce(ctx, []byte(id))
				cancel()
				mu.Lock()
				told[id] = o
				mu.Unlock()
			}
		})
	}
	for range 6 { // the fault's times are the subject here: a stall outlasts the callers' patience
		time.Sleep(150 * time.Millisecond)
		w.stall.Store(true)
		time.Sleep(450 * time.Millisecond)
		w.cut()
		w.stall.Store(false)
	}
	close(stop)
	wg.Wait()
	there := map[string]bool{}
	for _, values := range contents(t, brokers, topic, 3) {
		for _, v := range values {
			there[v] = true
		}
	}
	counts := map[Outcome]int{}
	for id, o := range told {
		counts[o]++
		if o == Acknowledged && !there[id] {
			t.Errorf("%s acknowledged, not there", id)
		}
		if o == Refused && there[id] {
			t.Errorf("%s refused, but there", id)
		}
	}
	if counts[Acknowledged] == 0 || counts[Acknowledged] == len(told) {
		t.Errorf("the faults had no effect: %v", counts)
	}
	t.Logf("%v, %d stored", counts, len(there))
}

// TestTraceparentTravelsInAHeader: of the records whose context has one, and of those alone.
func TestTraceparentTravelsInAHeader(t *testing.T) {
	t.Parallel()
	brokers, topic := testkit.Kafka(t), testkit.Topic(t, 1)
	p := newProducer(t, ProducerConfig{Brokers: brokers, Topic: topic})
	const trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	for i, ctx := range []context.Context{t.Context(), tracing.WithTraceparent(t.Context(), trace), t.Context()} {
		if o, err := p.Produce(ctx, fmt.Append(nil, i)); o != Acknowledged {
			t.Fatal(o, err)
		}
	}
	transport := &kafka.Transport{}
	defer transport.CloseIdleConnections()
	f := &fetcher{client: &kafka.Client{Addr: kafka.TCP(brokers...), Transport: transport}, topic: topic, maxBytes: 1 << 20}
	found := map[string]string{}
	for f.next < 3 {
		batch, err := f.fetch(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range batch.Records {
			found[string(r.Value)] = r.Trace
		}
	}
	if len(found) != 3 || found["0"] != "" || found["1"] != trace || found["2"] != "" {
		t.Errorf("%q", found)
	}
}
