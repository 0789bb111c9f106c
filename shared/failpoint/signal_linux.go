//go:build chaos

package failpoint

import (
	"os"
	"runtime"
	"syscall"
)

// send signals this thread. A signal to the process is taken by any of its threads, and on a busy machine the
// thread that hit the failpoint would run on for a while.
func send(sig syscall.Signal) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	_ = syscall.Tgkill(os.Getpid(), syscall.Gettid(), sig)
}
