package recommend

import (
	"sync"
	"time"
)

// The breaker's figures.
const (
	tripAfter  = 5 // failures in a row
	leastPause = time.Second
	mostPause  = 30 * time.Second
)

// breaker spares shoppers the wait for an engine that is known to fail:
//
//	closed ──tripAfter failures in a row──▶ open ──pause over──▶ one probe ──answered──▶ closed
//	                                          ▲                     │
//	                                          └──failed, pause × 2──┘
//
// Its zero value, with a clock, is closed.
type breaker struct {
	now func() time.Time

	mu       sync.Mutex
	failures int
	pause    time.Duration
	until    time.Time // the end of the pause; zero while closed
	probing  bool
}

// allow reports whether to ask. Who was allowed reports the outcome.
func (b *breaker) allow() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.until.IsZero() {
		return true
	}
	if b.probing || b.now().Before(b.until) {
		return false
	}
	b.probing = true
	return true
}

func (b *breaker) report(answered bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if answered {
		b.failures, b.pause, b.until, b.probing = 0, 0, time.Time{}, false
		return
	}
	b.failures++
	switch {
	case b.probing:
		b.pause = min(2*b.pause, mostPause)
	case b.until.IsZero() && b.failures >= tripAfter:
		b.pause = leastPause
	default: // not enough yet, or asked before the pause began
		return
	}
	b.until, b.probing = b.now().Add(b.pause), false
}

// open reports whether the engine is not asked now.
func (b *breaker) open() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return !b.until.IsZero()
}
