package stream

import (
	"context"
	"slices"
	"sync"
	"testing"

	"storefront.internal/shared/testkit"
)

// beginnings remembers what Begin was asked, and lets each partition begin at an offset.
type beginnings struct {
	mu    sync.Mutex
	asked []Start
	at    int64 // negative: where the group is
}

func (b *beginnings) begin(_ context.Context, x *Beginning) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.asked = slices.Clone(x.Starts)
	for i := range x.Starts {
		if b.at >= 0 {
			x.Starts[i].Offset = b.at
		}
	}
	return nil
}

func (b *beginnings) last(t *testing.T) Start {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.asked) != 1 {
		t.Fatalf("begun with %+v", b.asked)
	}
	return b.asked[0]
}

// TestAConsumerBeginsWhereBeginSays: a group without offsets, then one whose offsets are marked, sent back,
// and set by a tool.
func TestAConsumerBeginsWhereBeginSays(t *testing.T) {
	t.Parallel()
	brokers, topic, group := testkit.Kafka(t), testkit.Topic(t, 1), testkit.Name("g")
	produce(t, brokers, topic, "a", 50)
	read := func(at int64, want int) Start {
		t.Helper()
		cfg, b, s := consumerConfig(brokers, group, topic), &beginnings{at: at}, newStore()
		cfg.Begin = b.begin
		stop := start(t, cfg, s.handle)
		s.await(t, want)
		if err := stop(); err != nil {
			t.Error(err)
		}
		if len(s.values) != want {
			t.Errorf("%d records, want %d", len(s.values), want)
		}
		return b.last(t)
	}
	if got := read(-1, 50); got.Committed != -1 || got.Marked || got.Offset != 0 {
		t.Errorf("a new group: %+v", got)
	}
	if got := read(20, 30); got.Committed != 50 || !got.Marked || got.First != 0 {
		t.Errorf("its second member: %+v", got)
	}
	commitOffset(t, brokers, group, topic, 40)
	if got := read(-1, 10); got.Committed != 40 || got.Marked {
		t.Errorf("after a tool set the offset: %+v", got)
	}
	if got := read(49, 1); got.Committed != 50 || !got.Marked {
		t.Errorf("after it went on: %+v", got)
	}
}

// TestSpansHaveNoGap: compacted offsets and control batches belong to the record after them, and what ends a
// fetch to its last record.
func TestSpansHaveNoGap(t *testing.T) {
	t.Parallel()
	b := Batch{from: 10, to: 20, Records: []Record{{Offset: 12}, {Offset: 13}, {Offset: 17}}}
	for i, want := range [][2]int64{{10, 13}, {13, 14}, {14, 20}} {
		if from, to := b.Span(i); from != want[0] || to != want[1] {
			t.Errorf("record %d stands for %d to %d, want %v", i, from, to, want)
		}
	}
}
