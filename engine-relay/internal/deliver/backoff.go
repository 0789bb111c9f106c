package deliver

import "time"

// Backoff is the wait after a failure: it doubles from Min to Max, and jitter takes up to half of it away, so that
// what failed together does not come back together.
type Backoff struct {
	Min, Max time.Duration
}

// After returns the wait after the n-th failure (from 1). jitter is in [0, 1).
func (b Backoff) After(n int, jitter float64) time.Duration {
	d := b.Min
	for i := 1; i < n && d < b.Max; i++ {
		d *= 2
	}
	d = min(d, b.Max)
	return d - time.Duration(jitter*float64(d/2))
}
