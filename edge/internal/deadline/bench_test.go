package deadline

import (
	"context"
	"testing"
	"time"
)

// BenchmarkContext is the context of a request that ends before its deadline: by package context, by this
// package, and by this package when something waits for Done.
func BenchmarkContext(b *testing.B) {
	base, stop := context.WithCancel(context.Background())
	defer stop()
	b.Run("context.WithTimeout", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			ctx, cancel := context.WithTimeout(base, time.Second)
			if ctx.Err() != nil {
				b.Fatal("it has ended")
			}
			cancel()
		}
	})
	for name, waits := range map[string]bool{"deadline.Context": false, "deadline.Context and Done": true} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				ctx := New(base, time.Now().Add(time.Second))
				if waits {
					_ = ctx.Done()
				}
				if ctx.Err() != nil {
					b.Fatal("it has ended")
				}
				ctx.End()
			}
		})
	}
}
