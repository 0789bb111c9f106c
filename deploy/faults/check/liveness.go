package check

import (
	"fmt"
	"slices"
	"time"

	"storefront.internal/deploy/faults/history"
	"storefront.internal/deploy/faults/liveness"
)

// Goodput is what was measured of one operation while one dependency was down.
type Goodput struct {
	Case, Property string
	Op             history.Op
	From, Until    time.Duration // after the begin of the fault
	Before, During float64       // the share of steady calls that succeeded
	Floor          float64       // of Before
	Answered       bool          // every answer in time counts as success
	Excused        string        // why it is not judged
}

const (
	// maxStalled is the share of a window in which the machine may stall.
	maxStalled = 0.1
	// minBefore is the goodput before a fault with which one can compare.
	minBefore = 0.8
	// minCalls is the number of calls that make a share.
	minCalls = 8
)

// checkGoodput checks L1 to L6.
func (r *checker) checkGoodput() {
	for i := range r.faults {
		f := &r.faults[i]
		c, known := liveness.Find(f.Case)
		if !known {
			continue
		}
		for _, e := range c.Expect {
			if e.Warm && f.Cold || e.Cold && !f.Cold {
				continue
			}
			g, measured := r.goodput(f, c, e)
			if !measured {
				continue
			}
			r.stats.Goodput = append(r.stats.Goodput, g)
			if g.Excused == "" && g.During < g.Floor*g.Before {
				r.violation(c.Property, fmt.Sprintf("%s: too few calls of %s succeed", c.Name(), e.Op),
					g.describe(f.At))
			}
		}
	}
}

func (g *Goodput) describe(at int64) string {
	return fmt.Sprintf("%.0f %% from %s to %s, %.0f %% before, at %s", 100*g.During, g.From,
		g.Until.Round(time.Millisecond), 100*g.Before, time.Duration(at).Round(time.Second))
}

// goodput measures an expectation. It is false when the fault ended before.
func (r *checker) goodput(f *history.Fault, c liveness.Case, e liveness.Expectation) (Goodput, bool) {
	until := time.Duration(f.Until - f.At)
	if e.Until > 0 {
		until = min(until, e.Until)
	}
	// A call that the end of the fault may have answered is not counted.
	until -= liveness.Timely
	g := Goodput{Case: c.Name(), Property: c.Property, Op: e.Op, From: e.From, Until: until, Floor: e.Floor,
		Answered: e.Answered}
	from, to := f.At+int64(e.From), f.At+int64(until)
	var calls, callsBefore int
	g.During, calls = r.share(e, f.Target, from, to)
	g.Before, callsBefore = r.share(e, f.Target, f.At-int64(liveness.Before), f.At-int64(liveness.Timely))
	if calls < minCalls || callsBefore == 0 {
		return g, false
	}
	switch {
	case g.Before < minBefore:
		g.Excused = "too little goodput before"
	case r.stalled(from, to+int64(liveness.Timely)) > maxStalled:
		g.Excused = "the machine stalled"
	}
	return g, true
}

// share returns the share of the steady calls of a time that succeeded, and their number. Calls of the
// process that is down do not count.
func (r *checker) share(e liveness.Expectation, down string, from, to int64) (share float64, calls int) {
	good := 0
	at, _ := slices.BinarySearchFunc(r.calls, from, func(c *call, at int64) int {
		return int(max(-1, min(1, c.begin.At-at)))
	})
	for _, c := range r.calls[at:] {
		if c.begin.At >= to {
			break
		}
		if !c.begin.Steady || c.begin.Op != e.Op || c.begin.Edge == down {
			continue
		}
		calls++
		if c.succeeded(e.Answered) {
			good++
		}
	}
	return float64(good) / float64(max(1, calls)), calls
}

// succeeded reports whether the call was answered in time and, unless any answer counts, with what the client
// asked for. That an item does not exist is an answer.
func (c *call) succeeded(anyAnswer bool) bool {
	if !c.ended || c.end.Status == 0 || c.end.At-c.begin.At > int64(liveness.Timely) {
		return false
	}
	return anyAnswer || c.end.Status < 300 || c.begin.Op == history.Item && c.end.Status == 404
}

// stalled returns the share of a time in which the machine stalled.
func (r *checker) stalled(from, to int64) float64 {
	var sum int64
	for _, s := range r.stalls {
		sum += max(0, min(s.Until, to)-max(s.At, from))
	}
	return float64(sum) / float64(max(1, to-from))
}

// checkRecovery checks L7.
func (r *checker) checkRecovery() {
	for i := range r.faults {
		f := &r.faults[i]
		if f.Case == "" || f.Recovered == 0 {
			continue
		}
		took := time.Duration(f.Recovered - f.Until)
		if took > liveness.RecoveryLimit && r.stalled(f.Until, f.Recovered) <= maxStalled {
			r.violation("L7", f.Case+": not recovered within "+liveness.RecoveryLimit.String(),
				took.Round(100*time.Millisecond).String())
		}
	}
}
