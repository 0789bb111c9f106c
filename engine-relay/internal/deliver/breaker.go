package deliver

import (
	"sync"
	"time"
)

// breaker leaves an engine alone that fails whoever asks. Closed, everybody sends. After threshold failures in a row,
// or when the engine names a time, it opens; when the wait is over one probe goes at a time, and each that fails opens
// it for longer. Any sign of life closes it.
type breaker struct {
	threshold int
	backoff   Backoff
	jitter    func() float64

	mu      sync.Mutex
	fails   int // in a row
	opened  int // times in a row; 0 is closed
	until   time.Time
	probing int // which probe is under way; 0 is none
	probes  int
}

// pass is what the breaker allows.
type pass uint8

const (
	shut  pass = iota // nobody sends
	probe             // this caller may send one delivery; it must report back, by success, failure or pardon
	open              // everybody sends
)

// ask says what the caller may do now; a probe has a number.
func (b *breaker) ask(now time.Time) (pass, int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.opened == 0:
		return open, 0
	case b.probing != 0 || now.Before(b.until):
		return shut, 0
	}
	b.probes++
	b.probing = b.probes
	return probe, b.probing
}

// pardon takes back a probe, if it is still under way: it was not sent.
func (b *breaker) pardon(number int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.probing == number {
		b.probing = 0
	}
}

func (b *breaker) success() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fails, b.opened, b.probing = 0, 0, 0
}

// failure counts a failure. retryAfter is the engine's own word and opens at once.
func (b *breaker) failure(now time.Time, retryAfter time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fails++
	probed := b.probing != 0
	b.probing = 0
	if b.opened > 0 && !probed {
		// Sent before it opened: only the engine's word moves the time.
		b.extend(now.Add(retryAfter))
		return
	}
	if !probed && retryAfter <= 0 && b.fails < b.threshold {
		return
	}
	b.opened++
	b.until = now.Add(max(retryAfter, b.backoff.After(b.opened, b.jitter())))
}

func (b *breaker) extend(t time.Time) {
	if t.After(b.until) {
		b.until = t
	}
}

func (b *breaker) closed() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.opened == 0
}
