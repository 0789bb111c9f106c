package telemetry

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// Throttle bounds the log lines about the same thing: so many in each interval. The next line after that says
// how many were left out. It is for lines that an outage or a client can cause at the rate of requests. What
// is left out last is never told, so a metric has to count as well.
//
// K says what counts as the same thing. It needs a small set of values, because each one is remembered. A
// Throttle is safe for concurrent use.
type Throttle[K comparable] struct {
	interval time.Duration
	lines    int

	mu   sync.Mutex
	same map[K]*throttled
}

// throttled is what happened in the interval that began at a time.
type throttled struct {
	began   time.Time
	written int
	skipped int // since the last line
}

// NewThrottle returns a Throttle that allows so many lines in an interval about the same thing.
func NewThrottle[K comparable](interval time.Duration, lines int) *Throttle[K] {
	return &Throttle[K]{interval: interval, lines: lines, same: map[K]*throttled{}}
}

// Allow reports whether a line may be written now, and how many were left out since the last one.
func (t *Throttle[K]) Allow(key K) (skipped int, ok bool) {
	now := time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.same[key]
	if s == nil {
		s = &throttled{}
		t.same[key] = s
	}
	if now.Sub(s.began) >= t.interval {
		s.began, s.written = now, 0
	}
	if s.written == t.lines {
		s.skipped++
		return 0, false
	}
	skipped = s.skipped
	s.written, s.skipped = s.written+1, 0
	return skipped, true
}

// Log writes a line when Allow allows it.
func (t *Throttle[K]) Log(log *slog.Logger, level slog.Level, key K, msg string, attrs ...slog.Attr) {
	if skipped, ok := t.Allow(key); ok {
		log.LogAttrs(context.Background(), level, msg, append(attrs, NotLogged(skipped))...)
	}
}

// NotLogged is the attribute that says how many lines like this one were left out.
func NotLogged(n int) slog.Attr {
	if n == 0 {
		return slog.Attr{} // handlers leave it out
	}
	return slog.Int("similar_not_logged", n)
}
