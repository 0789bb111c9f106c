package stream

import (
	"errors"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
)

func read(t *testing.T, r *flushReader) string {
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

func TestStoppedAttemptTakesNothingMore(t *testing.T) {
	t.Parallel()
	a, b := &pending{value: []byte("a")}, &pending{value: []byte("b")}
	batch := []*pending{a, b}
	late := &flushReader{attempt: firstAttempt, records: batch}
	if got := read(t, late); got != "a" || late.stop() {
		t.Fatalf("%q, or the stop claims that nothing was read", got)
	}
	if _, err := late.ReadRecord(); !errors.Is(err, errRevoked) {
		t.Fatalf("read on after the stop: %v", err)
	}
	for _, rec := range batch {
		rec.giveBack(late.attempt, Unknown)
	}
	second := &flushReader{attempt: firstAttempt + 1, records: batch}
	if got := read(t, second) + read(t, second); got != "ab" {
		t.Fatalf("the second attempt reads %q", got)
	}
	for rec, want := range map[*pending]Outcome{a: Unknown, b: Refused} {
		if got, mine := rec.verdict(second.attempt, Refused); got != want || !mine {
			t.Errorf("%s after Unknown, Refused: %s, want %s", rec.value, got, want)
		}
		if got, _ := rec.verdict(second.attempt, Acknowledged); got != Acknowledged {
			t.Errorf("%s: %s", rec.value, got)
		}
		if got, _ := rec.verdict(second.attempt+1, Acknowledged); got != Unknown {
			t.Errorf("%s was in another attempt than the acknowledged one: %s", rec.value, got)
		}
	}
}

func TestUnreadAttemptIsProofOfNothingSent(t *testing.T) {
	t.Parallel()
	r := &flushReader{attempt: firstAttempt, records: []*pending{{}}}
	if !r.stop() {
		t.Fatal("nobody had read")
	}
	if _, err := r.ReadRecord(); !errors.Is(err, errRevoked) {
		t.Fatalf("a late encoder got %v", err)
	}
}

func TestReaderPassesOverWhatCallersLeft(t *testing.T) {
	t.Parallel()
	gone, here := &pending{value: []byte("gone")}, &pending{value: []byte("here")}
	gone.state.Store(cancelled)
	r := &flushReader{attempt: firstAttempt, records: []*pending{gone, here}}
	if got := read(t, r); got != "here" {
		t.Fatalf("read %q", got)
	}
	if _, err := r.ReadRecord(); !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	if _, mine := gone.verdict(r.attempt, Acknowledged); mine {
		t.Error("a cancelled record is settled twice")
	}
}

func TestRefusalIsProofOnly(t *testing.T) {
	t.Parallel()
	for code, want := range map[kafka.Error]bool{
		kafka.MessageSizeTooLarge: true, kafka.NotEnoughReplicas: true, kafka.TopicAuthorizationFailed: true,
		kafka.NotEnoughReplicasAfterAppend: false, kafka.RequestTimedOut: false, kafka.NotLeaderForPartition: false, kafka.KafkaStorageError: false, kafka.Unknown: false,
	} {
		if refusal(code) != want {
			t.Errorf("%v: %v", code, !want)
		}
	}
	if permanent(kafka.NotEnoughReplicas) || !permanent(kafka.MessageSizeTooLarge) {
		t.Error("another attempt helps against the first, and not against the second")
	}
}

func TestPartitionsTakeTurnsAndRest(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	var ps partitions
	ps.update([]int{0, 1, 2}, now)
	var order []int
	for range 6 {
		id, ok := ps.pick(now)
		if !ok {
			t.Fatal("none is free")
		}
		order = append(order, id)
		ps.release(id, false, now)
	}
	if !slices.Equal(order, []int{0, 1, 2, 0, 1, 2}) {
		t.Errorf("turns %v", order)
	}
	for range breakAfter {
		ps.turn(func(p partition) bool { return p.id == 1 })
		ps.release(1, true, now)
	}
	for range 6 {
		id, _ := ps.pick(now)
		ps.release(id, false, now)
		if id == 1 {
			t.Error("a failing partition is used while others are well")
		}
	}
	ps.turn(func(p partition) bool { return p.id == 0 })
	if id := ps.another(0, now); id != 2 {
		t.Errorf("second attempt on %d", id)
	}
	if id, ok := ps.pick(now); ok {
		t.Errorf("picked %d: one is busy twice, one rests", id)
	}
	if id, ok := ps.pick(now.Add(breakFor)); !ok || id != 1 {
		t.Errorf("after its rest: %d %v", id, ok)
	}
	ps.update([]int{7}, now)
	ps.release(2, false, now)
	if id := ps.another(7, now); id != 7 {
		t.Errorf("the only one: %d", id)
	}
}
