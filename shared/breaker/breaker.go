// Package breaker owns the circuit breaker: calls to something that keeps failing fail at once instead of
// each waiting for its own timeout.
//
//	closed ──Failures in a row, or a Retry-After──▶ open ──open time over──▶ half-open ──success──▶ closed
//	                                                 ▲                          │
//	                                                 └──failure: open longer ───┘
//
// Closed, all calls pass. Open, none passes. Half-open, one call at a time passes, the probe. A success
// always closes.
package breaker

import (
	"sync"
	"time"

	"storefront.internal/shared/backoff"
)

// State is what a Breaker does with calls.
type State uint8

// The states.
const (
	Closed State = iota
	HalfOpen
	Open
)

// Config says when a Breaker opens, and for how long.
type Config struct {
	Failures int // in a row that open it; 1 when zero
	// the open time; it grows with each failed probe and has jitter when Max is above Min
	Open         backoff.Policy
	ProbeTimeout time.Duration    // after which a probe without an outcome counts as lost; never when zero
	Now          func() time.Time // time.Now when nil
}

// Breaker is a circuit breaker. It is safe for concurrent use.
type Breaker struct {
	cfg Config

	mu       sync.Mutex
	failures int       // in a row
	opened   int       // times in a row; 0 is closed
	until    time.Time // the end of the open time
	probe    int       // the number of the probe under way; 0 is none
	probes   int       // numbers given out
	lostAt   time.Time // when the probe under way counts as lost
}

// New returns a closed Breaker.
func New(cfg Config) *Breaker {
	cfg.Failures = max(cfg.Failures, 1)
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return &Breaker{cfg: cfg}
}

// Permit allows one call. The caller reports the outcome by Success or Failure of the Breaker.
type Permit struct {
	breaker *Breaker
	probe   int
}

// Probe reports whether the call is the one that a half-open Breaker lets through.
func (p Permit) Probe() bool { return p.probe != 0 }

// Release gives back a probe that was not sent, so that the next call may probe. It does nothing after an
// outcome.
func (p Permit) Release() {
	p.breaker.mu.Lock()
	defer p.breaker.mu.Unlock()
	if p.breaker.probe == p.probe {
		p.breaker.probe = 0
	}
}

// Acquire returns a permit for one call, or false when the call must not be made.
func (b *Breaker) Acquire() (Permit, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.opened == 0 {
		return Permit{breaker: b}, true
	}
	now := b.cfg.Now()
	if now.Before(b.until) || b.probing(now) {
		return Permit{}, false
	}
	b.probes++
	b.probe, b.lostAt = b.probes, now.Add(b.cfg.ProbeTimeout)
	return Permit{breaker: b, probe: b.probe}, true
}

// probing reports whether a probe is under way. The mutex is held.
func (b *Breaker) probing(now time.Time) bool {
	return b.probe != 0 && (b.cfg.ProbeTimeout <= 0 || now.Before(b.lostAt))
}

// Success reports a call that succeeded.
func (b *Breaker) Success() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.failures, b.opened, b.probe = 0, 0, 0
}

// Failure reports a call that failed. A positive retryAfter opens the Breaker at once and for at least that
// long. A failure of a call from before the Breaker opened changes nothing but that time.
func (b *Breaker) Failure(retryAfter time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now, probed := b.cfg.Now(), b.probe != 0
	b.failures++
	b.probe = 0
	switch {
	case b.opened > 0 && !probed:
		if until := now.Add(retryAfter); until.After(b.until) {
			b.until = until
		}
	case probed || retryAfter > 0 || b.failures >= b.cfg.Failures:
		b.opened++
		b.until = now.Add(max(retryAfter, b.openTime()))
	}
}

func (b *Breaker) openTime() time.Duration {
	if b.cfg.Open.Max <= b.cfg.Open.Min {
		return b.cfg.Open.Min
	}
	return b.cfg.Open.Delay(b.opened)
}

// OpenFor returns how long the Breaker lets no call through, 0 when it is not open.
func (b *Breaker) OpenFor() time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.opened == 0 {
		return 0
	}
	return max(0, b.until.Sub(b.cfg.Now()))
}

// State returns what the Breaker does with calls now.
func (b *Breaker) State() State {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.opened == 0:
		return Closed
	case b.cfg.Now().Before(b.until):
		return Open
	}
	return HalfOpen
}
