package stream

import (
	"fmt"
	"testing"

	"storefront.internal/shared/testkit"
)

// BenchmarkProduce produces records of a typical size from many concurrent callers.
func BenchmarkProduce(b *testing.B) {
	brokers, topic := testkit.Kafka(b), testkit.Topic(b, 4)
	for _, callers := range []int{1, 16, 256} {
		b.Run(fmt.Sprint(callers), func(b *testing.B) {
			p := NewProducer(ProducerConfig{Brokers: brokers, Topic: topic})
			b.Cleanup(func() { _ = p.Close(b.Context()) })
			value := make([]byte, 4800)
			b.SetParallelism(callers / 2)
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if o, err := p.Produce(b.Context(), value); o != Acknowledged {
						b.Errorf("%s %v", o, err)
					}
				}
			})
		})
	}
}
