package service

import (
	"runtime/debug"
	"testing"
)

// The limit is that of the whole process, so this test is not parallel.
func TestApplyMemoryHeadroom(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	t.Cleanup(func() { debug.SetMemoryLimit(before) })
	debug.SetMemoryLimit(1 << 40)
	if got, want := ApplyMemoryHeadroom(), int64(1<<40-(1<<40)/10); got != want ||
		debug.SetMemoryLimit(-1) != want {
		t.Errorf("%d, want %d", got, want)
	}
	debug.SetMemoryLimit(1<<63 - 1)
	if got := ApplyMemoryHeadroom(); got != 0 || debug.SetMemoryLimit(-1) != 1<<63-1 {
		t.Errorf("%d without a limit", got)
	}
}
