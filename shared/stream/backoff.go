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
	select {
	case <-ctx.Done():
	case <-time.After(b.pause/2 + rand.N(b.pause)):
	}
	b.pause = min(2*b.pause, backoffMax)
}

// fetchRest is what a fetcher that has read its partition to the end leaves between two fetches: else each record would cost one.
const fetchRest = 20 * time.Millisecond

func rest(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(fetchRest):
	}
}
