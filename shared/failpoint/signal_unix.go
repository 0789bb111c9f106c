//go:build chaos && unix && !linux

package failpoint

import (
	"os"
	"syscall"
)

func send(sig syscall.Signal) { _ = syscall.Kill(os.Getpid(), sig) }
