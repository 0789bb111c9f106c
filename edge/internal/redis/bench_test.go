package redis

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"storefront.internal/edge/internal/intake"
	"storefront.internal/edge/internal/intake/claimstest"
	"storefront.internal/shared/stream"
)

type acknowledger struct{}

func (acknowledger) Produce(context.Context, []byte) (stream.Outcome, error) {
	return stream.Acknowledged, nil
}

// BenchmarkRecord10 is the use case with real claims and without Kafka: batches of ten new signals, many at a time.
func BenchmarkRecord10(b *testing.B) {
	client, prefix := open(b)
	c := NewClaims(pipeline(b, client, 2), prefix, false)
	if err := c.MarkEpoch(b.Context(), nil, true); err != nil {
		b.Fatal(err)
	}
	edge := claimstest.Service(c, acknowledger{}, &claimstest.Ledger{Log: &claimstest.Log{}})
	var n atomic.Int64
	now := time.Now()
	b.ReportAllocs()
	b.SetParallelism(32)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			var ids [10]string
			batch := n.Add(1)
			for i := range ids {
				ids[i] = fmt.Sprintf("sig_%d_%d", batch, i)
			}
			results, err := edge.Record(context.Background(), request(now, ids[:]), nil)
			if err != nil || results[0].Status != "accepted" {
				b.Errorf("%+v, %v", results, err)
				return
			}
		}
	})
}

func request(now time.Time, ids []string) intake.Request { return claimstest.Request(now, ids...) }
