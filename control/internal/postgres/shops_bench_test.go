package postgres_test

import (
	"fmt"
	"testing"
	"time"

	"storefront.internal/control/internal/provider"
	"storefront.internal/shared/fault"
)

// BenchmarkLoad runs a bootstrap of 4,000 products from a provider that answers at once, in pages of 200.
func BenchmarkLoad(b *testing.B) {
	const products = 4000
	var took time.Duration
	for range b.N {
		b.StopTimer()
		m := newMarket(b)
		m.platform.size = 200
		for i := range products {
			m.platform.set(fmt.Sprintf("p%05d", i), "a title of an ordinary length")
		}
		r := m.open()
		b.StartTimer()
		began := time.Now()
		for again := time.Duration(1); again > 0; {
			var err error
			if again, err = m.loader.Run(b.Context(), r.ID); err != nil {
				b.Fatal(err)
			}
		}
		took += time.Since(began)
	}
	b.ReportMetric(float64(products*b.N)/took.Seconds(), "products/s")
}

// BenchmarkReceive receives webhooks of many entities, and rejects as many.
func BenchmarkReceive(b *testing.B) {
	m := newMarket(b)
	for i := 0; b.Loop(); i++ {
		r := m.request(event(provider.Changed, fmt.Sprint(i%1000)))
		if i%2 == 1 {
			r.Signature = ""
		}
		if _, err := m.hooks.Receive(b.Context(), r); err != nil && !fault.Is(err, fault.Unauthorized) {
			b.Fatal(err)
		}
	}
}
