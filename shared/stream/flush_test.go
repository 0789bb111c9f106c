package stream

import (
	"errors"
	"io"
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
	first := &flushReader{records: batch, now: time.Now}
	if got := readValue(t, first); got != "a" || first.stop() != reading {
		t.Fatalf("%q, or stop does not tell that the encoder may still copy it", got)
	}
	if _, err := first.ReadRecord(); !errors.Is(err, errStopped) {
		t.Fatalf("read on after stop: %v", err)
	}
	second := &flushReader{records: batch, now: time.Now}
	if got := readValue(t, second) + readValue(t, second); got != "ab" {
		t.Fatalf("the second attempt reads %q", got)
	}
	if _, err := second.ReadRecord(); !errors.Is(err, io.EOF) || second.stop() != read {
		t.Fatalf("at the end: %v", err)
	}
}

func TestStopBeforeTheEncoderMeansNothingSent(t *testing.T) {
	t.Parallel()
	r := &flushReader{records: values("a"), now: time.Now}
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
	r := &flushReader{records: batch, now: time.Now}
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
