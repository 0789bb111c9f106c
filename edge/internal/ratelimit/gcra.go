package ratelimit

import (
	"math"
	"time"
)

// Quota is a token bucket: so many tokens a second, and so many at once.
type Quota struct {
	PerSecond float64
	Burst     int
}

// Share is the part of the quota that one of n replicas gives. A bucket always holds at least one token.
func (q Quota) Share(n int) Quota {
	n = max(n, 1)
	return Quota{PerSecond: q.PerSecond / float64(n), Burst: max(1, (q.Burst+n-1)/n)}
}

// cost is the time in which n tokens grow.
func (q Quota) cost(n int) time.Duration {
	return time.Duration(float64(n) / q.PerSecond * float64(time.Second))
}

// Window is the time, in whole seconds and at least one, in which an empty bucket fills: the `w` of RateLimit-Policy.
func (q Quota) Window() int {
	return max(1, ceilSeconds(q.cost(q.Burst)))
}

// moment is an instant in nanoseconds; a bucket's state is one: the "theoretical arrival time", when it will be full.
type moment int64

// admit takes n tokens when the bucket holds them. Refused, the state is as before and wait says when they will be there.
func (q Quota) admit(full, now moment, n int) (next moment, wait time.Duration, ok bool) {
	next = q.charge(full, now, n)
	if wait = time.Duration(next-now) - q.cost(q.Burst); wait > 0 {
		return full, wait, false
	}
	return next, 0, true
}

// charge takes n tokens whether or not the bucket holds them; it may so go below zero.
func (q Quota) charge(full, now moment, n int) moment {
	return max(full, now) + moment(q.cost(n))
}

// level is what a bucket holds.
func (q Quota) level(full, now moment) Level {
	missing := time.Duration(max(full-now, 0))
	left := q.cost(q.Burst) - missing
	// Half a nanosecond of a token is forgiven, so that a division never hides a whole one.
	tokens := math.Floor(left.Seconds()*q.PerSecond + 1e-6)
	return Level{Remaining: max(0, int(tokens)), Full: missing}
}

// Level is what a bucket holds, and the time until it is full again.
type Level struct {
	Remaining int
	Full      time.Duration
}

func ceilSeconds(d time.Duration) int {
	return int((d + time.Second - 1) / time.Second)
}
