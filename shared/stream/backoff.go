package stream

import (
	"context"
	"math/rand/v2"
	"time"
)

const (
	backoffMin = 50 * time.Millisecond
	backoffMax = 2 * time.Second
)

// backoff is a growing pause with jitter.
type backoff struct{ pause time.Duration }

func newBackoff() *backoff { return &backoff{pause: backoffMin} }

func (b *backoff) reset() { b.pause = backoffMin }

func (b *backoff) wait(ctx context.Context) {
	sleep(ctx, b.pause/2+rand.N(b.pause))
	b.pause = min(2*b.pause, backoffMax)
}

// sleep waits for the time or the context's end.
func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
