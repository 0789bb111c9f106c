package stack

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"syscall"
)

// Pause stops the process and its children where they are (SIGSTOP).
func (p *Process) Pause() error { return p.Signal(syscall.SIGSTOP) }

// Resume lets them go on (SIGCONT).
func (p *Process) Resume() error { return p.Signal(syscall.SIGCONT) }

// Paused reports whether the process is stopped by SIGSTOP, its own included.
func (p *Process) Paused() bool {
	state, _ := stateOf(p.Pid())
	return state == "T"
}

// Signal sends a signal; SIGKILL, SIGSTOP and SIGCONT reach the process's children too. Nothing happens to a
// process that is down.
func (p *Process) Signal(sig syscall.Signal) error {
	p.mu.Lock()
	child := p.child
	p.mu.Unlock()
	if child == nil {
		return nil
	}
	var children []int
	if sig == syscall.SIGKILL || sig == syscall.SIGSTOP || sig == syscall.SIGCONT {
		children = childrenOf(child.Pid())
	}
	err := child.Signal(sig)
	for _, pid := range children {
		if e := syscall.Kill(pid, sig); e != nil && !errors.Is(e, syscall.ESRCH) {
			err = errors.Join(err, e)
		}
	}
	return err
}

// childrenOf lists the direct children of a process. PostgreSQL's are in sessions of their own, so no process
// group has them.
func childrenOf(parent int) []int {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var children []int
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if _, of := stateOf(pid); of == parent {
			children = append(children, pid)
		}
	}
	return children
}

// stateOf reads a process's state ("T": stopped) and its parent; without a /proc it knows neither.
func stateOf(pid int) (state string, parent int) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil || pid == 0 {
		return "", 0
	}
	// pid (name) state parent …; a name may hold spaces.
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	if len(fields) < 2 {
		return "", 0
	}
	parent, _ = strconv.Atoi(string(fields[1]))
	return string(fields[0]), parent
}
