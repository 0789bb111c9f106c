package redis

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"storefront.internal/edge/internal/intake/intaketest"
	"storefront.internal/shared/ident"
	"storefront.internal/shared/stream"
)

type acknowledger struct{}

func (acknowledger) Produce(context.Context, ident.ConnectionID, []byte) (stream.Outcome, error) {
	return stream.Acknowledged, nil
}

// BenchmarkRecord10 is the use case with real claims and without Kafka: batches of ten new signals, many at a
// time.
func BenchmarkRecord10(b *testing.B) {
	client, prefix := open(b)
	c := NewClaims(newBatcher(b, client), prefix, false)
	if err := c.StartEpoch(b.Context(), nil, true); err != nil {
		b.Fatal(err)
	}
	edge := intaketest.Service(c, acknowledger{}, &intaketest.Ledger{Log: &intaketest.Log{}}, nil)
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
			results, err := edge.Record(context.Background(), intaketest.Request(now, ids[:]...), nil)
			if err != nil || results[0].Status != "accepted" {
				b.Errorf("%+v, %v", results, err)
				return
			}
		}
	})
}
