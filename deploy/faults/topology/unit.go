package topology

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"storefront.internal/deploy/local/process"
)

// Unit is one process of the topology under a keeper: whoever kills it on purpose says when it may come back, and when it ends
// by itself the keeper starts it again after a moment, as an orchestrator does, and counts that.
type Unit struct {
	Name   string
	launch func(context.Context) (*process.Process, error)
	say    func(format string, args ...any)

	mu      sync.Mutex
	process *process.Process // nil: none runs
	wanted  bool
	changed chan struct{} // closed and replaced at every change
	fell    []Fall
	starts  int
	kept    chan struct{} // closed when the keeper has ended
}

// Fall is an end that nobody asked for.
type Fall struct {
	At     time.Time
	Ending string
}

const restartPause = 500 * time.Millisecond

func newUnit(ctx context.Context, name string, say func(string, ...any), launch func(context.Context) (*process.Process, error)) *Unit {
	u := &Unit{Name: name, launch: launch, say: say, changed: make(chan struct{}), kept: make(chan struct{})}
	go u.keep(ctx)
	return u
}

// note changes the state and wakes whoever waits for it.
func (u *Unit) note(change func()) {
	u.mu.Lock()
	defer u.mu.Unlock()
	change()
	close(u.changed)
	u.changed = make(chan struct{})
}

// wait waits until the state is right.
func (u *Unit) wait(ctx context.Context, right func() bool) error {
	for {
		u.mu.Lock()
		ok, changed := right(), u.changed
		u.mu.Unlock()
		if ok {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", u.Name, ctx.Err())
		}
	}
}

func (u *Unit) keep(ctx context.Context) {
	defer close(u.kept)
	for u.wait(ctx, func() bool { return u.wanted }) == nil {
		p, err := u.launch(ctx)
		if err != nil {
			u.say("%s does not start: %v", u.Name, err)
			if Sleep(ctx, restartPause) != nil {
				return
			}
			continue
		}
		u.note(func() { u.process = p; u.starts++ })
		<-p.Done()
		u.note(func() {
			u.process = nil
			if u.wanted && ctx.Err() == nil {
				u.fell = append(u.fell, Fall{time.Now(), p.Ending()})
				u.say("%s ended by itself: %s", u.Name, p.Ending())
			}
		})
		if Sleep(ctx, restartPause) != nil {
			return
		}
	}
}

// Start lets the unit run and waits until it does.
func (u *Unit) Start(ctx context.Context) error {
	u.note(func() { u.wanted = true })
	return u.wait(ctx, func() bool { return u.process != nil })
}

// Running waits until the unit runs.
func (u *Unit) Running(ctx context.Context) error {
	return u.wait(ctx, func() bool { return u.process != nil })
}

// Want lets the unit come back without waiting for it.
func (u *Unit) Want() { u.note(func() { u.wanted = true }) }

// Kill ends the unit and its children at once; it stays down until Start or Want.
func (u *Unit) Kill(ctx context.Context) error { return u.end(ctx, syscall.SIGKILL) }

// Stop asks the unit to end in order; it stays down until Start or Want.
func (u *Unit) Stop(ctx context.Context, sig syscall.Signal) error { return u.end(ctx, sig) }

func (u *Unit) end(ctx context.Context, sig syscall.Signal) error {
	if err := u.Running(ctx); err != nil {
		return err
	}
	u.note(func() { u.wanted = false })
	if err := u.Signal(sig); err != nil {
		return err
	}
	return u.wait(ctx, func() bool { return u.process == nil })
}

// Pause stops the unit and its children where they are.
func (u *Unit) Pause() error { return u.Signal(syscall.SIGSTOP) }

// Continue lets them go on.
func (u *Unit) Continue() error { return u.Signal(syscall.SIGCONT) }

// Signal reaches the process and, but for an orderly stop, its children. One that is down is not reached.
func (u *Unit) Signal(sig syscall.Signal) error {
	u.mu.Lock()
	p := u.process
	u.mu.Unlock()
	if p == nil {
		return nil
	}
	var children []int
	if sig == syscall.SIGKILL || sig == syscall.SIGSTOP || sig == syscall.SIGCONT {
		children = childrenOf(p.Pid())
	}
	err := p.Signal(sig)
	for _, pid := range children {
		if e := syscall.Kill(pid, sig); e != nil && !errors.Is(e, syscall.ESRCH) {
			err = errors.Join(err, e)
		}
	}
	return err
}

// Falls are the ends that nobody asked for.
func (u *Unit) Falls() []Fall {
	u.mu.Lock()
	defer u.mu.Unlock()
	return append([]Fall(nil), u.fell...)
}

// close ends the unit for good.
func (u *Unit) close(grace time.Duration, sig syscall.Signal) error {
	u.note(func() { u.wanted = false })
	_ = u.Continue()
	u.mu.Lock()
	p := u.process
	u.mu.Unlock()
	if p == nil {
		return nil
	}
	return p.Stop(sig, grace)
}

// childrenOf lists the direct children of a process: PostgreSQL's are in sessions of their own, so no group reaches them.
func childrenOf(pid int) []int {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var children []int
	for _, e := range entries {
		child, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		stat, err := os.ReadFile("/proc/" + e.Name() + "/stat")
		if err != nil {
			continue
		}
		text := string(stat)
		fields := strings.Fields(text[strings.LastIndexByte(text, ')')+1:]) // state, parent, …
		if len(fields) > 1 && fields[1] == strconv.Itoa(pid) {
			children = append(children, child)
		}
	}
	return children
}

// Sleep rests, or ends with the context.
func Sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
