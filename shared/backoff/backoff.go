// Package backoff owns the waits between attempts: the exponential delay with jitter, the sleep that a
// context ends, and the Retry-After header. It keeps no state: callers count their attempts.
package backoff

import (
	"context"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Policy is a delay that doubles with each attempt, from Min to Max.
type Policy struct{ Min, Max time.Duration }

// Delay returns the delay after the given attempt, which counts from 1. Half of it is random, so that callers
// that failed together do not return together: it lies between half of the full delay and the full delay.
func (p Policy) Delay(attempt int) time.Duration {
	full := p.Full(attempt)
	if full < 2 {
		return full
	}
	return full - rand.N(full/2)
}

// Full returns the delay after the given attempt without jitter.
func (p Policy) Full(attempt int) time.Duration {
	d := p.Min
	for i := 1; i < attempt && d > 0 && d < p.Max; i++ {
		d *= 2
	}
	return min(d, p.Max)
}

// Sleep waits for d. It returns early, with the context's error, when ctx ends.
func Sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return ctx.Err()
	}
}

// RetryAfter reads the value of a Retry-After header, which is a number of seconds or an HTTP date. It
// returns at most longest, and 0 for a missing, malformed or past value.
func RetryAfter(value string, now time.Time, longest time.Duration) time.Duration {
	value = strings.TrimSpace(value)
	if seconds, err := strconv.ParseFloat(value, 64); err == nil {
		if !(seconds > 0) { // also NaN
			return 0
		}
		return time.Duration(min(seconds, longest.Seconds()) * float64(time.Second))
	}
	at, err := http.ParseTime(value)
	if err != nil {
		return 0
	}
	return min(max(at.Sub(now), 0), longest)
}
