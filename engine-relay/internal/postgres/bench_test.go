package postgres_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"storefront.internal/engine-relay/internal/sink"
	"storefront.internal/shared/ident"
	"storefront.internal/shared/signal"
)

// BenchmarkSink measures the whole transaction (decode, ledger, signals, audit, carts, deliveries, COMMIT) on
// records of ten signals, a third of which change carts.
func BenchmarkSink(b *testing.B) {
	for _, workers := range []int{1, 2} {
		for _, size := range []int{10, 500, 2000, 5000} {
			b.Run(
				fmt.Sprintf("workers=%d/signals=%d", workers, size),
				func(b *testing.B) { benchmarkSink(b, workers, size) },
			)
		}
	}
}

func benchmarkSink(b *testing.B, workers, size int) {
	s := setup(b)
	s.begin(b, "bench/1", "kafka", -1, -1, -1, -1, -1, -1)
	var n atomic.Int64
	var messages [][]sink.Message
	for range b.N {
		var batch []sink.Message
		for range size / 10 {
			i := n.Add(1)
			m := benchmarkRecord(i)
			m.Partition, m.Offset = int(i%6), i/6+3
			m.From, m.To = m.Offset, m.Offset+1
			batch = append(batch, m)
		}
		messages = append(messages, batch)
	}
	b.ReportAllocs()
	b.ResetTimer()
	var next atomic.Int64
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			r := writer(s.store)
			for i := next.Add(1) - 1; int(i) < b.N; i = next.Add(1) - 1 {
				batch := gather(b, messages[i]...)
				batch.Claim("bench/1", nil)
				if err := r.Write(b.Context(), batch); err != nil {
					b.Error(err)
				}
			}
		})
	}
	wg.Wait()
	b.ReportMetric(float64(size*b.N)/b.Elapsed().Seconds(), "signals/s")
}

func benchmarkRecord(n int64) sink.Message {
	var signals []signal.Signal
	for i := range 10 {
		s := act(fmt.Sprintf("0123456789abcdefghij%d_%d", n, i), signal.Click, -1)
		if i%3 == 0 {
			s.Type = signal.AddToCart
		}
		s.DecisionID = ident.DecisionID(fmt.Sprintf("dec_0123456789abcdefghijklmnopqrstuvwxyzABCD_%d", n))
		s.Visitor = &signal.Visitor{VisitorID: "vis_0123456789abcdef", SessionID: "ses_0123456789abcdef"}
		signals = append(signals, s)
	}
	return batchOf(signals...)
}
