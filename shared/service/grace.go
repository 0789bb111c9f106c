package service

import (
	"context"
	"time"

	"storefront.internal/shared/backoff"
)

// WithGracePeriod returns a context that ends grace after ctx, so that work under way may still finish when
// ctx ends. The caller calls cancel when the work is done.
func WithGracePeriod(ctx context.Context, grace time.Duration) (longer context.Context, cancel func()) {
	longer, end := context.WithCancel(context.WithoutCancel(ctx))
	unwatch := context.AfterFunc(ctx, func() {
		_ = backoff.Sleep(longer, grace)
		end()
	})
	return longer, func() {
		unwatch()
		end()
	}
}
