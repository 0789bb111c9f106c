package stream

import (
	"errors"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
)

func readValue(t *testing.T, r *flushReader) string {
	t.Helper()
	rec, err := r.ReadRecord()
	if err != nil {
		t.Fatal(err)
	}
	value, err := kafka.ReadAll(rec.Value)
	if err != nil {
		t.Fatal(err)
	}
	return string(value)
}

func values(values ...string) (batch []*queuedRecord) {
	for _, v := range values {
		batch = append(batch, &queuedRecord{value: []byte(v), done: make(chan struct{})})
	}
	return batch
}

func TestStoppedReaderGivesNothingMore(t *testing.T) {
	t.Parallel()
	batch := values("a", "b")
	first := &flushReader{records: batch}
	if got := readValue(t, first); got != "a" || first.stop() != reading {
		t.Fatalf("%q, or stop does not tell that the encoder may still copy it", got)
	}
	if _, err := first.ReadRecord(); !errors.Is(err, errStopped) {
		t.Fatalf("read on after stop: %v", err)
	}
	second := &flushReader{records: batch}
	if got := readValue(t, second) + readValue(t, second); got != "ab" {
		t.Fatalf("the second attempt reads %q", got)
	}
	if _, err := second.ReadRecord(); !errors.Is(err, io.EOF) || second.stop() != read {
		t.Fatalf("at the end: %v", err)
	}
}

func TestStopBeforeTheEncoderMeansNothingSent(t *testing.T) {
	t.Parallel()
	r := &flushReader{records: values("a")}
	if r.stop() != unread {
		t.Fatal("the encoder has not begun")
	}
	if _, err := r.ReadRecord(); !errors.Is(err, errStopped) {
		t.Fatalf("a late encoder got %v", err)
	}
}

func TestReaderSkipsAbandonedRecords(t *testing.T) {
	t.Parallel()
	batch := values("gone", "here")
	batch[0].abandoned.Store(true)
	r := &flushReader{records: batch}
	if got := readValue(t, r); got != "here" {
		t.Fatalf("read %q", got)
	}
	if _, err := r.ReadRecord(); !errors.Is(err, io.EOF) || r.taken != 1 {
		t.Fatal(err, r.taken)
	}
	p := newProducer(t, ProducerConfig{Brokers: []string{"127.0.0.1:1"}, Topic: "none"})
	cause := errors.New("attempt failed")
	if left := p.finishAbandoned(batch, cause); len(left) != 1 || string(left[0].value) != "here" ||
		!hasWaiters(left) {
		t.Errorf("%d records are sent again", len(left))
	}
	if <-batch[0].done; batch[0].outcome != Unknown || !errors.Is(batch[0].err, cause) {
		t.Errorf("the abandoned record: %s %v", batch[0].outcome, batch[0].err)
	}
}

func TestPermanentErrors(t *testing.T) {
	t.Parallel()
	for code, want := range map[kafka.Error]bool{
		kafka.MessageSizeTooLarge: true, kafka.TopicAuthorizationFailed: true, kafka.NotEnoughReplicas: false,
		kafka.NotEnoughReplicasAfterAppend: false, kafka.RequestTimedOut: false,
		kafka.NotLeaderForPartition: false,
		kafka.KafkaStorageError:     false, kafka.Unknown: false,
	} {
		if permanent(code) != want {
			t.Errorf("%v: %v", code, !want)
		}
	}
}

// TestFlushLimitRecovers: a split halves the limit, and acknowledged flushes raise it again.
func TestFlushLimitRecovers(t *testing.T) {
	t.Parallel()
	p := newProducer(t, ProducerConfig{Brokers: []string{"127.0.0.1:1"}, Topic: "none", MaxBatchBytes: 1000})
	p.limit = 300
	large, small := values("a"), values("b")
	large[0].size, small[0].size = 300, 1
	for _, step := range []struct {
		batch []*queuedRecord
		err   error
		want  int
	}{{small, nil, 300}, {large, errStopped, 300}, {large, nil, 337}, {large, nil, 379}} {
		for _, rec := range step.batch {
			rec.done = make(chan struct{})
		}
		if p.finish(step.batch, step.err); p.limit != step.want {
			t.Errorf("limit %d, want %d", p.limit, step.want)
		}
	}
	for range 20 {
		large[0].done, large[0].size = make(chan struct{}), p.limit
		p.finish(large, nil)
	}
	if p.limit != 1000 {
		t.Errorf("limit %d in the end", p.limit)
	}
	p.bytes = 0
}

func TestPartitionsRoundRobinAndBreaker(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	ps := partitions{now: func() time.Time { return now }}
	failure := errors.New("timeout")
	only := func(id int) func(partition) bool { return func(p partition) bool { return p.id == id } }
	ps.update([]int{0, 1, 2})
	var order []int
	for range 6 {
		id, ok := ps.pick()
		if !ok {
			t.Fatal("none is free")
		}
		order = append(order, id)
		ps.release(id, nil)
	}
	if !slices.Equal(order, []int{0, 1, 2, 0, 1, 2}) {
		t.Errorf("order %v", order)
	}
	for range breakerFailures {
		ps.nextRoundRobin(only(1))
		ps.release(1, failure)
		ps.nextRoundRobin(only(1))
		ps.release(1, errNothingSent) // says nothing about the partition
	}
	for range 6 {
		id, _ := ps.pick()
		ps.release(id, nil)
		if id == 1 {
			t.Error("a failing partition is used while others are healthy")
		}
	}
	ps.nextRoundRobin(only(0))
	if id := ps.retryPartition(0); id != 2 {
		t.Errorf("second attempt on %d", id)
	}
	if id, ok := ps.pick(); ok {
		t.Errorf("picked %d: two are busy, and the breaker of one is open", id)
	}
	now = now.Add(breakerOpen)
	if id, ok := ps.pick(); !ok || id != 1 {
		t.Errorf("half-open: %d %v", id, ok)
	}
	ps.release(1, failure)
	if id, ok := ps.pick(); ok {
		t.Errorf("picked %d after its probe failed", id)
	}
	now = now.Add(breakerOpen)
	ps.pick()
	ps.release(1, kafka.MessageSizeTooLarge) // the partition answers
	if !ps.list[1].healthy() {
		t.Error("open although the probe was answered")
	}
	ps.update([]int{7})
	ps.release(2, nil)
	if id := ps.retryPartition(7); id != 7 {
		t.Errorf("the only one: %d", id)
	}
}

func TestPartitionsAllOpenAreStillUsed(t *testing.T) {
	t.Parallel()
	ps := partitions{now: func() time.Time { return time.Unix(1000, 0) }}
	ps.update([]int{0})
	for range breakerFailures {
		ps.pick()
		ps.release(0, errors.New("timeout"))
	}
	if id, ok := ps.pick(); !ok || id != 0 {
		t.Errorf("%d %v", id, ok)
	}
}
