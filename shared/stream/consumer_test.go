package stream

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/segmentio/kafka-go"

	"storefront.internal/shared/testkit"
)

// store is the memory of a handler, shared by the members of a group.
type store struct {
	mu     sync.Mutex
	values map[string]int
	wake   chan struct{}
}

func newStore() *store { return &store{values: map[string]int{}, wake: make(chan struct{}, 1)} }

func (s *store) handle(ctx context.Context, a *Assignment) error {
	for b := range a.Batches() {
		s.mu.Lock()
		for _, r := range b.Records {
			s.values[string(r.Value)]++
		}
		s.mu.Unlock()
		if err := a.Done(b); err != nil && ctx.Err() == nil && !errors.Is(err, ErrFenced) {
			return err
		}
		select {
		case s.wake <- struct{}{}:
		default:
		}
	}
	return nil
}

// await waits until n different records are stored.
func (s *store) await(t *testing.T, n int) {
	t.Helper()
	for {
		s.mu.Lock()
		have := len(s.values)
		s.mu.Unlock()
		if have >= n {
			return
		}
		select {
		case <-s.wake:
		case <-t.Context().Done():
			t.Fatalf("%d of %d records", have, n)
		case <-time.After(60 * time.Second):
			t.Fatalf("%d of %d records after a minute", have, n)
		}
	}
}

func consumerConfig(brokers []string, group string, topics ...string) ConsumerConfig {
	return ConsumerConfig{
		Brokers: brokers, Group: group, Topics: topics, SessionTimeout: 6 * time.Second,
		HeartbeatInterval: 300 * time.Millisecond,
		RebalanceTimeout:  10 * time.Second, CheckEvery: 100 * time.Millisecond,
		Logger: slog.New(slog.DiscardHandler),
	}
}

// start runs a consumer and returns the function that stops it and returns its result.
func start(t *testing.T, cfg ConsumerConfig, handle Handler) (stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	result := make(chan error, 1)
	go func() { result <- NewConsumer(cfg).Run(ctx, handle) }()
	stop = sync.OnceValue(func() error { cancel(); return <-result })
	t.Cleanup(func() { _ = stop() })
	return stop
}

func produce(t *testing.T, brokers []string, topic, prefix string, n int) {
	t.Helper()
	p := newProducer(t, ProducerConfig{Brokers: brokers, Topic: topic})
	var wg sync.WaitGroup
	for w := range 16 {
		wg.Go(func() {
			for i := w; i < n; i += 16 {
				if o, err := p.Produce(t.Context(), fmt.Appendf(nil, "%s%d", prefix, i)); o != Acknowledged {
					t.Errorf("%s %v", o, err)
				}
			}
		})
	}
	wg.Wait()
}

func TestConsumerContinuesAfterDoneBatches(t *testing.T) {
	t.Parallel()
	brokers, topic, group := testkit.Kafka(t), testkit.Topic(t, 3), testkit.Name("g")
	produce(t, brokers, topic, "a", 500)
	first := newStore()
	stop := start(t, consumerConfig(brokers, group, topic), first.handle)
	first.await(t, 500)
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	produce(t, brokers, topic, "b", 100)
	second := newStore()
	stop = start(t, consumerConfig(brokers, group, topic), second.handle)
	second.await(t, 100)
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	if len(second.values) != 100 || second.values["b7"] != 1 {
		t.Errorf("%d records, of which some were done before", len(second.values))
	}
}

func TestConsumersRebalanceWithoutLoss(t *testing.T) {
	t.Parallel()
	brokers, topic, group := testkit.Kafka(t), testkit.Topic(t, 4), testkit.Name("g")
	shared := newStore()
	start(t, consumerConfig(brokers, group, topic), shared.handle)
	produce(t, brokers, topic, "a", 200)
	shared.await(t, 200)
	var wg sync.WaitGroup
	wg.Go(func() { produce(t, brokers, topic, "b", 2000) })
	stopSecond := start(t, consumerConfig(brokers, group, topic), shared.handle)
	wg.Wait()
	shared.await(t, 2200)
	wg.Go(func() { produce(t, brokers, topic, "c", 1000) })
	if err := stopSecond(); err != nil {
		t.Error(err)
	}
	wg.Wait()
	shared.await(t, 3200)
}

func TestConsumerHaltsOnALostOffset(t *testing.T) {
	t.Parallel()
	brokers, topic, group := testkit.Kafka(t), testkit.Topic(t, 1), testkit.Name("g")
	produce(t, brokers, topic, "a", 50)
	commitOffset(t, brokers, group, topic, 5000)
	reg := prometheus.NewRegistry()
	cfg := consumerConfig(brokers, group, topic)
	cfg.Registerer = reg
	result := make(chan error, 1)
	s := newStore()
	go func() { result <- NewConsumer(cfg).Run(t.Context(), s.handle) }()
	if err := <-result; !errors.Is(err, ErrOffsetLost) {
		t.Fatalf("got %v", err)
	}
	if n, err := testutil.GatherAndCount(reg, "storefront_relay_consumer_offset_lost_total"); err != nil ||
		n != 1 || len(s.values) != 0 {
		t.Errorf("%d series, %v, %d records", n, err, len(s.values))
	}
	cfg.AcceptLoss, cfg.Registerer = true, nil
	stop := start(t, cfg, s.handle)
	s.await(t, 50)
	if err := stop(); err != nil {
		t.Error(err)
	}
}

// commitOffset sets the committed offset of a group.
func commitOffset(t *testing.T, brokers []string, group, topic string, offset int64) {
	t.Helper()
	transport := &kafka.Transport{}
	defer transport.CloseIdleConnections()
	client := &kafka.Client{Addr: kafka.TCP(brokers...), Timeout: 10 * time.Second, Transport: transport}
	for {
		res, err := client.OffsetCommit(t.Context(), &kafka.OffsetCommitRequest{
			GroupID: group, GenerationID: -1,
			Topics: map[string][]kafka.OffsetCommit{topic: {{Partition: 0, Offset: offset}}},
		})
		if err == nil && res.Topics[topic][0].Error == nil {
			return
		}
		if t.Context().Err() != nil {
			t.Fatal(err)
		}
	}
}

func TestConsumerEndsWithTheHandlersError(t *testing.T) {
	t.Parallel()
	brokers, topic := testkit.Kafka(t), testkit.Topic(t, 1)
	boom := errors.New("boom")
	err := NewConsumer(consumerConfig(brokers, testkit.Name("g"), topic)).Run(t.Context(),
		func(context.Context, *Assignment) error { return boom })
	if !errors.Is(err, boom) {
		t.Errorf("got %v", err)
	}
}

func TestDoneMovesOnlyWithoutGaps(t *testing.T) {
	t.Parallel()
	var commits []int64
	var fail error
	a := &Assignment{state: map[topicPartition]*progress{{"t", 0}: {}},
		commit: func(o map[string]map[int]int64) error {
			if fail == nil {
				commits = append(commits, o["t"][0])
			}
			return fail
		}}
	a.seek(topicPartition{"t", 0}, 10)
	batch := func(from, to int64) Batch { return Batch{Topic: "t", from: from, to: to} }
	steps := []struct {
		done []Batch
		fail error
		want []int64
	}{
		{[]Batch{batch(20, 30)}, nil, nil},
		{[]Batch{batch(10, 20)}, nil, []int64{30}},
		{[]Batch{batch(40, 41), batch(30, 40)}, kafka.NetworkException, []int64{30}},
		{nil, nil, []int64{30, 41}},
		{[]Batch{batch(41, 50)}, kafka.IllegalGeneration, []int64{30, 41}},
		{nil, nil, []int64{30, 41, 50}},
		{nil, nil, []int64{30, 41, 50}},
	}
	for i, step := range steps {
		fail = step.fail
		err := a.Done(step.done...)
		if (err != nil) != (step.fail != nil) ||
			errors.Is(err, ErrFenced) != errors.Is(step.fail, kafka.IllegalGeneration) {
			t.Errorf("step %d: %v", i, err)
		}
		if !slices.Equal(commits, step.want) {
			t.Errorf("step %d: committed %v, want %v", i, commits, step.want)
		}
	}
	if err := a.Done(batch(40, 45), Batch{Topic: "other", from: 0, to: 1}); err != nil || len(commits) != 3 {
		t.Errorf("an offset moved back: %v %v", commits, err)
	}
}

func TestStallWatch(t *testing.T) {
	t.Parallel()
	at := topicPartition{"t", 0}
	begin := time.Unix(1000, 0)
	for name, tt := range map[string]struct {
		observe func(second int) map[topicPartition]observation
		stalled bool
	}{
		"nothing to read": {func(int) map[topicPartition]observation {
			return map[topicPartition]observation{at: {end: 5, fetched: 5}}
		}, false},
		"moves": {func(s int) map[topicPartition]observation {
			return map[topicPartition]observation{at: {end: 99, fetched: int64(s / 20)}}
		}, false},
		"workers behind": {func(int) map[topicPartition]observation {
			return map[topicPartition]observation{at: {end: 99, fetched: 5, blocked: true}}
		}, false},
		"stands": {func(int) map[topicPartition]observation {
			return map[topicPartition]observation{at: {end: 99, fetched: 5}}
		}, true},
		"broker silent inside": {func(s int) map[topicPartition]observation {
			if s%25 == 0 {
				return nil
			}
			return map[topicPartition]observation{at: {end: 99, fetched: 5}}
		}, false},
	} {
		w := newStallWatch(30 * time.Second)
		stalled := false
		for s := range 90 {
			if got := w.observe(begin.Add(time.Duration(s)*time.Second), tt.observe(s)); len(got) > 0 {
				stalled = true
				if s < 30 || got[at] != 5 {
					t.Errorf("%s: %v after %d s", name, got, s)
				}
			}
		}
		if stalled != tt.stalled {
			t.Errorf("%s: stalled %v", name, stalled)
		}
	}
}

func TestEnsureTopicsCreatesMissingTopics(t *testing.T) {
	t.Parallel()
	brokers := testkit.Kafka(t)
	topics := []Topic{{Name: testkit.Name("e"), Partitions: 2, ReplicationFactor: -1},
		{Name: testkit.Name("e"), Partitions: 1, ReplicationFactor: 1}}
	for range 2 {
		if err := EnsureTopics(t.Context(), brokers, Security{}, topics); err != nil {
			t.Fatal(err)
		}
	}
	p := newProducer(t, ProducerConfig{Brokers: brokers, Topic: topics[0].Name})
	if err := p.Warm(t.Context()); err != nil || len(p.parts.list) != 2 {
		t.Errorf("%d partitions, %v", len(p.parts.list), err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if err := EnsureTopics(ctx, []string{"127.0.0.1:1"}, Security{}, topics); !errors.Is(err,
		context.DeadlineExceeded) {
		t.Errorf("without a broker: %v", err)
	}
}
