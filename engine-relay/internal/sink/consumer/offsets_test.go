package consumer

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"storefront.internal/engine-relay/internal/sink"
	"storefront.internal/shared/stream"
)

func TestAPartitionBeginsWherePostgresIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := consumer(&fakeWriter{}, 1, 10)
		c.cfg.Offsets = &database{next: 70, away: 3}
		b := &stream.Beginning{ClusterID: "k", Starts: []stream.Start{
			{Topic: "t", Partition: 1, Committed: 50, Marked: true, Offset: 50},
			{Topic: "t", Partition: 0, Committed: 100, Marked: true, Offset: 100},
		}}
		if err := c.Begin(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		for i, want := range []int64{70, 50} {
			if s := b.Starts[i]; s.Offset != want {
				t.Errorf("partition %d begins at %d, want %d", s.Partition, s.Offset, want)
			}
		}
		if n := testutil.ToFloat64(c.metrics.reread.WithLabelValues("t")); n != 30 {
			t.Errorf("%v records are read again, want 30", n)
		}
		r := &generationRun{Consumer: c}
		for position, want := range map[int64]float64{70: 30, 90: 10, 200: 0} {
			r.showBehind(map[sink.Partition]int64{{Topic: "t"}: position, {Topic: "t", ID: 1}: 50})
			if n := testutil.ToFloat64(c.metrics.behind.WithLabelValues("t")); n != want {
				t.Errorf("at %d: %v records behind, want %v", position, n, want)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		c.cfg.Offsets = &database{away: 1 << 30}
		time.AfterFunc(time.Minute, cancel)
		if err := c.Begin(ctx, b); !errors.Is(err, context.Canceled) {
			t.Errorf("without PostgreSQL: %v", err)
		}
	})
}

// TestAnIdleRelayFindsARestoredPostgres: nothing is stored while PostgreSQL goes back.
func TestAnIdleRelayFindsARestoredPostgres(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, d := &group{batches: make(chan stream.Batch), position: 100}, &database{next: 100}
		c := consumer(&fakeWriter{}, 2, 10)
		c.cfg.Offsets = d
		ended := make(chan error, 1)
		go func() { ended <- c.Consume(t.Context(), g) }()
		time.Sleep(time.Minute)
		synctest.Wait()
		select {
		case err := <-ended:
			t.Fatalf("ended before anything happened: %v", err)
		default:
		}
		d.mu.Lock()
		d.next = 99
		d.mu.Unlock()
		if err := <-ended; !errors.Is(err, sink.ErrBehind) {
			t.Errorf("got %v", err)
		}
	})
}

// behindWriter finds PostgreSQL behind.
type behindWriter struct{}

func (behindWriter) Write(context.Context, *sink.Batch) error { return sink.ErrBehind }

func TestATransactionThatFindsPostgresBehindEndsTheGeneration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &group{batches: make(chan stream.Batch, 1)}
		c := consumer(nil, 2, 10)
		c.cfg.Writer = behindWriter{}
		g.batches <- records(0, 0, 1)
		if err := c.Consume(t.Context(), g); !errors.Is(err, sink.ErrBehind) {
			t.Errorf("got %v", err)
		}
		if n := len(g.marked()); n != 0 {
			t.Errorf("%d batches are done", n)
		}
	})
}
