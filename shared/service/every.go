package service

import (
	"context"
	"time"
)

// Every calls fn at once and then every interval, until ctx ends. Calls never overlap: a call that takes
// longer than the interval delays the next.
func Every(ctx context.Context, interval time.Duration, fn func(context.Context)) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for ctx.Err() == nil {
		fn(ctx)
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
}
