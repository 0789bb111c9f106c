package ratelimit

import (
	"math"
	"time"
)

// Quota is a token bucket: its rate, and how many tokens it holds. A rate of 0 means no limit.
type Quota struct {
	PerSecond float64
	Burst     int
}

// Share is the part of the quota that one of n replicas gives. A bucket always holds at least one token.
func (q Quota) Share(n int) Quota {
	n = max(n, 1)
	return Quota{PerSecond: q.PerSecond / float64(n), Burst: max(1, (q.Burst+n-1)/n)}
}

// cost is the time in which the bucket gains n tokens.
func (q Quota) cost(n int) time.Duration {
	if q.PerSecond <= 0 {
		return 0
	}
	return time.Duration(float64(n) / q.PerSecond * float64(time.Second))
}

// Window is the time, in whole seconds and at least one, in which an empty bucket fills: the `w` of
// RateLimit-Policy.
func (q Quota) Window() int {
	return max(1, ceilSeconds(q.cost(q.Burst)))
}

// tat is the state of a bucket: its theoretical arrival time, in nanoseconds since 1970, at which it is full
// again.
type tat int64

// admit takes n tokens if the bucket holds them. Otherwise the state stays, and wait is the time until it
// holds them.
func (q Quota) admit(state, now tat, n int) (next tat, wait time.Duration, ok bool) {
	next = q.charge(state, now, n)
	if wait = time.Duration(next-now) - q.cost(q.Burst); wait > 0 {
		return state, wait, false
	}
	return next, 0, true
}

// charge takes n tokens whether or not the bucket holds them; the bucket may go below zero.
func (q Quota) charge(state, now tat, n int) tat {
	return max(state, now) + tat(q.cost(n))
}

// Level is what a bucket holds.
type Level struct {
	Remaining int           // tokens
	Wait      time.Duration // until it holds one
	Full      time.Duration // until it is full
}

func (q Quota) level(state, now tat) Level {
	if q.PerSecond <= 0 {
		return Level{Remaining: math.MaxInt}
	}
	missing := time.Duration(max(state-now, 0))
	left := q.cost(q.Burst) - missing
	tokens := math.Floor(left.Seconds()*q.PerSecond + 1e-6) // rounding must not hide a whole token
	return Level{Remaining: max(0, int(tokens)), Wait: max(0, q.cost(1)-left), Full: missing}
}

func ceilSeconds(d time.Duration) int {
	return int((d + time.Second - 1) / time.Second)
}
