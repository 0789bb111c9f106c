package service

import (
	"math"
	"runtime/debug"
)

// LeaveHeadroom lowers the runtime's memory limit to nine tenths of GOMEMLIMIT and returns it, or 0 when none is set. A
// container's variable can hold its memory limit and no share of it, and the limit of the runtime counts neither the program
// nor what the kernel keeps for it; a process that fills the last tenth is killed and not slowed. It is called once, at the
// start of a process.
func LeaveHeadroom() int64 {
	limit := debug.SetMemoryLimit(-1) // which only reads
	if limit == math.MaxInt64 {
		return 0
	}
	limit -= limit / 10
	debug.SetMemoryLimit(limit)
	return limit
}
