//go:build chaos

package failpoint

import (
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
)

// armed is the failpoint of this process. It is read once, at the start.
var armed = parse(os.Getenv("CRASHPOINT"))

type point struct {
	name   string
	left   atomic.Int64
	signal syscall.Signal
}

func parse(s string) *point {
	parts := strings.Split(s, ":")
	p := &point{name: parts[0], signal: syscall.SIGKILL}
	p.left.Store(1)
	if len(parts) > 1 {
		n, err := strconv.ParseInt(parts[1], 10, 64)
		if err != nil || n < 1 {
			panic("failpoint: CRASHPOINT must be name[:n[:kill|stop]]")
		}
		p.left.Store(n)
	}
	if len(parts) > 2 && parts[2] == "stop" {
		p.signal = syscall.SIGSTOP
	}
	return p
}

// Hit kills or stops the process at the n-th hit of the armed failpoint.
func Hit(name string) {
	if name != armed.name || armed.left.Add(-1) != 0 {
		return
	}
	send(armed.signal)
	if armed.signal == syscall.SIGKILL {
		select {} // until the signal arrives: nothing may run after the failpoint
	}
}
