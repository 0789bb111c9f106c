package postgres_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"storefront.internal/control/internal/observation"
)

// BenchmarkDeliver measures products per second through the use case of deliver_observations in batches of
// 500: new ones and then new revisions of them, each under two of 50 categories.
func BenchmarkDeliver(b *testing.B) {
	const size = 500
	var calls atomic.Int64
	for _, changed := range []bool{false, true} {
		b.Run(map[bool]string{false: "new", true: "changed"}[changed], func(b *testing.B) {
			s := newShop(b)
			body := func(batch, revision int64) []byte {
				elements := make([]string, size)
				for i := range elements {
					n := batch*size + int64(i)
					elements[i] = product(fmt.Sprintf("p%d", n), revision,
						"Remera de algodón "+strings.Repeat("x", 200),
						fmt.Sprintf("c%d", n%50), fmt.Sprintf("c%d", n%49))
				}
				return []byte(`{"observations":[` + strings.Join(elements, ",") + `]}`)
			}
			deliver := func(body []byte) {
				results, err := s.service.Deliver(context.Background(), s.source, body)
				if err != nil || results[size-1].Status != observation.Accepted {
					b.Error(results, err)
				}
			}
			const known = 20
			if changed {
				for batch := range int64(known) {
					deliver(body(batch, 1))
				}
			}
			b.SetParallelism(2)
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					n := calls.Add(1)
					if changed {
						deliver(body(n%known, 1+n))
					} else {
						deliver(body(n, 1))
					}
				}
			})
			b.ReportMetric(float64(b.N*size)/b.Elapsed().Seconds(), "entities/s")
		})
	}
}
