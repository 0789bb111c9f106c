package service

import (
	"math"
	"runtime/debug"
)

// ApplyMemoryHeadroom lowers the memory limit of the runtime to nine tenths of GOMEMLIMIT and returns it, or
// 0 when none is set. GOMEMLIMIT is usually the memory limit of the container, but the runtime's limit
// excludes the program itself and the kernel's buffers: a process that used all of it would be killed rather
// than slowed down. It is called once, at the start of a process.
func ApplyMemoryHeadroom() int64 {
	limit := debug.SetMemoryLimit(-1) // only reads it
	if limit == math.MaxInt64 {
		return 0
	}
	limit -= limit / 10
	debug.SetMemoryLimit(limit)
	return limit
}
