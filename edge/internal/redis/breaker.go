package redis

import (
	"sync"
	"time"
)

// Bounds of the breaker.
const (
	breakAfter = 3                      // failures in a row
	breakFor   = 500 * time.Millisecond // until one call may try again
)

// breaker lets requests fail at once while Redis is out of reach, instead of each waiting for its budget. After a
// while one call tries; the others fail until it succeeds.
type breaker struct {
	now func() time.Time

	mu       sync.Mutex
	failures int
	tryAt    time.Time
}

// allow reports whether a call may be made. A call that was allowed reports how it ended.
func (b *breaker) allow() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.failures < breakAfter {
		return true
	}
	now := b.now()
	if now.Before(b.tryAt) {
		return false
	}
	b.tryAt = now.Add(breakFor) // this call is the try
	return true
}

func (b *breaker) report(ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if ok {
		b.failures = 0
		return
	}
	b.failures++
	if b.failures >= breakAfter {
		b.tryAt = b.now().Add(breakFor)
	}
}
