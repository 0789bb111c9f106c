package consumer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"storefront.internal/engine-relay/internal/sink"
	"storefront.internal/shared/stream"
)

// group is a generation that the test plays: what it brought, and what was said to be done.
type group struct {
	batches chan stream.Batch
	mu      sync.Mutex
	done    []int64 // first offsets, in the order of Done
	calls   int
	fail    int // calls of Done that fail first

	position int64 // of partition 0
}

func (g *group) Batches() <-chan stream.Batch { return g.batches }

func (g *group) Done(batches ...stream.Batch) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.calls++
	for _, b := range batches {
		g.done = append(g.done, b.Records[0].Offset)
	}
	if g.fail > 0 {
		g.fail--
		return errors.New("the coordinator is away")
	}
	return nil
}

func (g *group) ID() string { return "member/1" }

func (g *group) Positions(f func(topic string, partition int, position int64)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	f("t", 0, g.position)
}

func (g *group) marked() []int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.done)
}

// fakeWriter is a writer whose transactions the test ends.
type fakeWriter struct {
	mu    sync.Mutex
	sizes []int
	gate  chan struct{} // one receive per transaction; nil: none waits
}

func (s *fakeWriter) Write(ctx context.Context, b *sink.Batch) error {
	s.mu.Lock()
	s.sizes = append(s.sizes, b.Size())
	s.mu.Unlock()
	if s.gate == nil {
		return nil
	}
	select {
	case <-s.gate:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *fakeWriter) seen() []int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.sizes)
}

// database is what PostgreSQL knows of stored offsets.
type database struct {
	mu    sync.Mutex
	next  int64 // of partition 0
	away  int   // calls that fail first
	begun []sink.Resumption
}

func (d *database) Begin(_ context.Context, _, cluster string, partitions []sink.Resumption) ([]int64,
	error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.away > 0 {
		d.away--
		return nil, errors.New("PostgreSQL is away")
	}
	d.begun = partitions
	starts := make([]int64, len(partitions))
	for i, p := range partitions {
		starts[i] = p.Start(cluster, &sink.Held{ClusterID: cluster, Next: d.next})
	}
	return starts, nil
}

func (d *database) Positions(context.Context, string) ([]sink.Position, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return []sink.Position{{Partition: sink.Partition{Topic: "t"}, Next: d.next}}, nil
}

// records makes a batch of records that are no JSON: each counts as one and is parked.
func records(partition int, first, n int) stream.Batch {
	b := stream.Batch{Topic: "t", Partition: partition}
	for i := range n {
		b.Records = append(
			b.Records,
			stream.Record{Offset: int64(first + i), Time: time.Now().Add(-time.Minute), Value: []byte("x")},
		)
	}
	return b
}

func consumer(s *fakeWriter, workers, size int) *Consumer {
	return New(
		Config{
			Writer:     s,
			Offsets:    &database{next: 1 << 40},
			Logger:     slog.New(slog.DiscardHandler),
			Registerer: prometheus.NewRegistry(),
			Signals:    "t",
			Decisions:  "d",
			Workers:    workers,
			BatchSize:  size,
			Grace:      3 * time.Second,
		},
	)
}

func equal[T comparable](t *testing.T, what string, got, want []T) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

func TestAnIdleSinkTakesAtOnceAndABusyOneGathers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, s := &group{batches: make(chan stream.Batch, 100)}, &fakeWriter{gate: make(chan struct{})}
		c := consumer(s, 1, 10)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- c.Consume(ctx, g) }()
		synctest.Wait()
		if c.Ready(ctx) != nil {
			t.Error("not ready with a generation")
		}
		g.batches <- records(0, 0, 1)
		synctest.Wait()
		equal(t, "transactions", s.seen(), []int{1})
		for i := range 4 {
			g.batches <- records(i%2, 10*i+1, 4)
			synctest.Wait()
		}
		if age := c.oldestUnread(); age != 60 {
			t.Errorf("oldest unread is %v s", age)
		}
		s.gate <- struct{}{}
		synctest.Wait()
		equal(t, "transactions", s.seen(), []int{1, 10})
		equal(t, "done", g.marked(), []int64{0})
		s.gate <- struct{}{}
		synctest.Wait()
		equal(t, "transactions", s.seen(), []int{1, 10, 6})
		equal(t, "done", g.marked(), []int64{0, 1, 11}) // the third is half stored
		s.gate <- struct{}{}
		synctest.Wait()
		equal(t, "done", g.marked(), []int64{0, 1, 11, 21, 31})
		if age := c.oldestUnread(); age != 0 {
			t.Errorf("oldest unread is %v s", age)
		}
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

// TestABatchLingers: a transaction begins a while after its first record, not after its last, and at once
// when it is full.
func TestABatchLingers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, s := &group{batches: make(chan stream.Batch, 100)}, &fakeWriter{}
		c := consumer(s, 1, 10)
		c.cfg.Linger = time.Second
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- c.Consume(ctx, g) }()
		for i := range 2 {
			g.batches <- records(0, i, 1)
			time.Sleep(600 * time.Millisecond)
			synctest.Wait()
		}
		equal(t, "transactions after the first one's second", s.seen(), []int{2})
		g.batches <- records(0, 2, 4)
		synctest.Wait()
		g.batches <- records(1, 6, 6)
		synctest.Wait()
		equal(t, "transactions with a full one", s.seen(), []int{2, 10})
		g.batches <- records(0, 12, 3)
		time.Sleep(999 * time.Millisecond)
		synctest.Wait()
		equal(t, "transactions before the next one's second", s.seen(), []int{2, 10})
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

// TestABatchIsDoneWhenAllItsTransactionsAre: the transactions of one fetched batch end in the wrong order.
func TestABatchIsDoneWhenAllItsTransactionsAre(t *testing.T) {
	t.Parallel()
	h := newUnstored()
	one := h.add(records(0, 0, 30))
	h.assign(one, false)
	h.assign(one, false)
	if whole := h.stored([]*fetchedBatch{one}); whole != nil {
		t.Error("done with a part that is not stored")
	}
	if whole := h.stored([]*fetchedBatch{one}); whole != nil {
		t.Error("done before all of it was given out")
	}
	h.assign(one, true)
	if whole := h.stored([]*fetchedBatch{one}); len(whole) != 1 {
		t.Error("not done with all parts stored")
	}
}

func TestANewerRecordHaltsItsPartitionAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, s := &group{batches: make(chan stream.Batch, 100)}, &fakeWriter{}
		c := consumer(s, 2, 100)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- c.Consume(ctx, g) }()
		newer := records(0, 0, 3)
		newer.Records[2].Value = []byte(`{"schema":99}`)
		g.batches <- newer
		g.batches <- records(0, 3, 2)
		g.batches <- records(1, 7, 2)
		synctest.Wait()
		equal(t, "done", g.marked(), []int64{7})
		total := 0
		for _, n := range s.seen() {
			total += n
		}
		if total != 4 { // two before the newer one, two of the other partition
			t.Errorf("%d records reached the sink", total)
		}
		if c.oldestUnread() == 0 {
			t.Error("the halted record counts as read")
		}
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

func TestAFailedCommitIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, s := &group{batches: make(chan stream.Batch, 1), fail: 3}, &fakeWriter{}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- consumer(s, 1, 10).Consume(ctx, g) }()
		g.batches <- records(0, 0, 1)
		time.Sleep(10 * commitRetryInterval)
		synctest.Wait()
		if g.calls != 4 {
			t.Errorf("%d commits, want 4", g.calls)
		}
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

func TestATransactionOutlivesItsGenerationForAGrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, finishes := range []bool{true, false} {
			g, s := &group{batches: make(chan stream.Batch, 1)}, &fakeWriter{gate: make(chan struct{})}
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error)
			go func() { ended <- consumer(s, 1, 10).Consume(ctx, g) }()
			g.batches <- records(0, 0, 1)
			synctest.Wait()
			cancel()
			began := time.Now()
			if finishes {
				time.Sleep(time.Second)
				s.gate <- struct{}{}
			}
			if err := <-ended; !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
			want := map[bool]time.Duration{true: time.Second, false: 3 * time.Second}[finishes]
			if took := time.Since(began); took != want {
				t.Errorf("ended after %v, want %v", took, want)
			}
			if marked := len(g.marked()); (marked == 1) != finishes {
				t.Errorf("finishes %v: %d batches done", finishes, marked)
			}
		}
	})
}

// TestEveryFetchedBatchIsDoneOnce: fetched batches of any size in transactions of any size.
func TestEveryFetchedBatchIsDoneOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for size := 1; size <= 12; size++ {
			g, s := &group{batches: make(chan stream.Batch, 100)}, &fakeWriter{}
			want := map[int64]bool{}
			offset := 0
			for n := 1; n <= 20; n++ {
				g.batches <- records(n%3, offset, n)
				want[int64(offset)] = true
				offset += n
			}
			close(g.batches)
			if err := consumer(s, 2, size).Consume(t.Context(), g); err != nil {
				t.Fatal(err)
			}
			got := map[int64]bool{}
			for _, first := range g.marked() {
				if got[first] {
					t.Errorf("size %d: %d is done twice", size, first)
				}
				got[first] = true
			}
			if !maps.Equal(got, want) {
				t.Errorf("size %d: done %v", size, got)
			}
			for _, n := range s.seen() {
				if n > size {
					t.Error(fmt.Errorf("a load of %d over %d", n, size))
				}
			}
		}
	})
}
