//go:build chaos

package crashpoint

import (
	"os"
	"runtime"
	"syscall"
)

// send signals this very thread: a signal to the process is taken by whichever thread runs next, and on a busy machine the one
// that hit the point would go on for a while.
func send(sig syscall.Signal) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	_ = syscall.Tgkill(os.Getpid(), syscall.Gettid(), sig)
}
