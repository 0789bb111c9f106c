package stream

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"

	"storefront.internal/shared/testkit"
	"storefront.internal/shared/tracing"
)

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
		t.Error("the record with the lost answer is not stored; the test shows nothing")
	}
}

func TestProducerStalledBrokerAndCutConnections(t *testing.T) {
	t.Parallel()
	for name, lookEvery := range map[string]time.Duration{"by Done": 0, "by looking": 20 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stalledBrokerAndCutConnections(t, lookEvery)
		})
	}
}

func stalledBrokerAndCutConnections(t *testing.T, lookEvery time.Duration) {
	brokers, topic := testkit.Kafka(t), testkit.Topic(t, 3)
	w := newWire(t, brokers[0])
	p := through(t, w, ProducerConfig{Brokers: brokers, Topic: topic, LookEvery: lookEvery,
		AttemptTimeout: 200 * time.Millisecond})
	var mu sync.Mutex
	outcomes := map[string]Outcome{}
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
				outcomes[id] = o
				mu.Unlock()
			}
		})
	}
	for range 6 { // a stall lasts longer than the callers wait
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
	for id, o := range outcomes {
		counts[o]++
		if o == Acknowledged && !there[id] {
			t.Errorf("%s acknowledged, not there", id)
		}
		if o == Refused && there[id] {
			t.Errorf("%s refused, but there", id)
		}
	}
	if counts[Acknowledged] == 0 || counts[Acknowledged] == len(outcomes) {
		t.Errorf("the faults had no effect: %v", counts)
	}
	t.Logf("%v, %d stored", counts, len(there))
}

// TestTraceparentTravelsInAHeader: records whose context has a traceparent carry it, and no others.
func TestTraceparentTravelsInAHeader(t *testing.T) {
	t.Parallel()
	brokers, topic := testkit.Kafka(t), testkit.Topic(t, 1)
	p := newProducer(t, ProducerConfig{Brokers: brokers, Topic: topic})
	const trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	for i, ctx := range []context.Context{t.Context(), tracing.WithTraceparent(t.Context(), trace),
		t.Context()} {
		if o, err := p.Produce(ctx, fmt.Append(nil, i)); o != Acknowledged {
			t.Fatal(o, err)
		}
	}
	transport := &kafka.Transport{}
	defer transport.CloseIdleConnections()
	f := &fetcher{client: &kafka.Client{Addr: kafka.TCP(brokers...), Transport: transport}, topic: topic,
		maxBytes: 1 << 20}
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
