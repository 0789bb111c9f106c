// Package process runs child processes: each has its own process group, so that Ctrl-C in a terminal reaches
// only the parent, which stops the children in order; each dies with the parent; and each is stopped by a
// signal with a deadline. It knows nothing of what a child does.
package process

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// Spec says what to run.
type Spec struct {
	Name string
	Path string
	Args []string
	Env  []string // nil: the environment of this process
	Dir  string
	Log  io.Writer // both outputs; nil discards them
	// User is the user that the child runs as; nil is the present one. Only root may set it.
	User *User
	// Death is the signal that the child gets when this process dies; zero is SIGKILL.
	Death syscall.Signal
}

// User is an unprivileged identity.
type User struct{ UID, GID uint32 }

// Unprivileged is the user for servers that do not run as root. It is nil when this process is not root.
func Unprivileged() *User {
	if os.Geteuid() != 0 {
		return nil
	}
	return &User{UID: 65534, GID: 65534}
}

// Process is a started child.
type Process struct {
	name string
	cmd  *exec.Cmd
	done chan struct{}
	err  error // valid once done is closed
}

// Start runs the child. The operating-system thread that starts it lives until the child ends, because the
// parent-death signal is tied to that thread and not to the process.
func Start(s Spec) (*Process, error) {
	cmd := exec.Command(s.Path, s.Args...)
	cmd.Env, cmd.Dir = s.Env, s.Dir
	cmd.Stdout, cmd.Stderr = s.Log, s.Log
	cmd.SysProcAttr = attributes(s)
	cmd.WaitDelay = 5 * time.Second
	p := &Process{name: s.Name, cmd: cmd, done: make(chan struct{})}
	started := make(chan error)
	go p.run(started)
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", s.Name, err)
	}
	return p, nil
}

func (p *Process) run(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := p.cmd.Start()
	started <- err
	if err != nil {
		return
	}
	p.err = p.cmd.Wait()
	close(p.done)
}

// Pid is the child's process id.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Name is what the child was called in its Spec.
func (p *Process) Name() string { return p.name }

// Done is closed when the child has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err is how the child ended: nil for exit code 0. It waits for the end.
func (p *Process) Err() error {
	<-p.done
	return p.err
}

// Ending describes how the child ended. It waits for the end.
func (p *Process) Ending() string {
	if err := p.Err(); err != nil {
		return err.Error()
	}
	return "without an error"
}

// Running reports whether the child runs.
func (p *Process) Running() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// Signal sends a signal; to a child that has ended it does nothing.
func (p *Process) Signal(sig syscall.Signal) error {
	err := p.cmd.Process.Signal(sig)
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return err
}

// Stop asks the child to end by sig and kills it after grace, which is an error.
func (p *Process) Stop(sig syscall.Signal, grace time.Duration) error {
	if !p.Running() {
		return nil
	}
	if err := p.Signal(sig); err != nil {
		return fmt.Errorf("stop %s: %w", p.name, err)
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-p.done:
		return nil
	case <-timer.C:
		p.Kill()
		return fmt.Errorf("stop %s: still running after %s, killed", p.name, grace)
	}
}

// Kill ends the child at once (SIGKILL) and waits for its end.
func (p *Process) Kill() {
	_ = p.Signal(syscall.SIGKILL)
	<-p.done
}
