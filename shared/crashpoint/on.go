//go:build chaos

package crashpoint

import (
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
)

// armed is read once: a process has one crash point for life. It is the one package variable of its kind, and exists
// in fault-test builds only.
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
			panic("crashpoint: CRASHPOINT wants name[:n[:kill|stop]]")
		}
		p.left.Store(n)
	}
	if len(parts) > 2 && parts[2] == "stop" {
		p.signal = syscall.SIGSTOP
	}
	return p
}

// Hit kills or stops the process at the armed point's n-th hit.
func Hit(name string) {
	if name != armed.name || armed.left.Add(-1) != 0 {
		return
	}
	send(armed.signal)
	if armed.signal == syscall.SIGKILL {
		select {} // the signal is on its way; nothing may run after the point
	}
}
