package stack

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"syscall"
	"time"

	"storefront.internal/deploy/local/process"
	"storefront.internal/deploy/stack/poll"
	"storefront.internal/shared/backoff"
)

// Process is one process of a deployment. It can be killed, paused and started again on the same addresses
// and data. A supervised process that ends by itself is started again after a pause, as an orchestrator does;
// any other stays down.
type Process struct {
	Name string
	URL  string // of its listener; "" when it has none
	// URL that its callers use: behind the link "clients>name" when the deployment has links, else URL
	Via   string
	Admin string // host:port of the operations port; "" when it has none

	launch     func(ctx context.Context, binaries string, env []string) (*process.Process, error)
	stopSignal syscall.Signal // of an orderly end
	supervised bool
	say        func(format string, args ...any)
	ended      chan struct{} // closed when the goroutine that runs the process has ended

	mu       sync.Mutex
	child    *process.Process // nil while none runs
	wanted   bool             // a child is to run
	failed   error            // of the last start, when it failed
	starts   int
	exits    []Exit
	ending   string   // of the last child
	binaries string   // folder of other binaries than the deployment's
	env      []string // further variables
	changed  chan struct{}
}

// Exit is an end of a process that was not asked for.
type Exit struct {
	At     time.Time
	Ending string
}

const restartPause = 500 * time.Millisecond

// newProcess makes a process that is not running. Its life ends with the context.
func newProcess(life context.Context, p *Process) *Process {
	p.changed, p.ended = make(chan struct{}), make(chan struct{})
	if p.stopSignal == 0 {
		p.stopSignal = syscall.SIGTERM
	}
	go p.run(life)
	return p
}

// update changes the state and wakes all that wait for a change.
func (p *Process) update(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
	close(p.changed)
	p.changed = make(chan struct{})
}

// await waits until a condition on the state holds.
func (p *Process) await(ctx context.Context, holds func() bool) error {
	for {
		p.mu.Lock()
		ok, changed := holds(), p.changed
		p.mu.Unlock()
		if ok {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", p.Name, ctx.Err())
		}
	}
}

// run starts a child whenever one is wanted and none runs.
func (p *Process) run(life context.Context) {
	defer close(p.ended)
	for p.await(life, func() bool { return p.wanted }) == nil {
		p.mu.Lock()
		binaries, env := p.binaries, p.env
		p.mu.Unlock()
		child, err := p.launch(life, binaries, env)
		if err != nil {
			p.say("%s does not start: %v", p.Name, err)
			p.update(func() { p.failed, p.wanted = err, p.supervised && p.wanted })
		} else {
			p.update(func() { p.child, p.failed = child, nil; p.starts++ })
			<-child.Done()
			p.update(func() { p.childEnded(life, child.Ending()) })
		}
		if p.supervised && backoff.Sleep(life, restartPause) != nil {
			return
		}
	}
}

func (p *Process) childEnded(life context.Context, ending string) {
	p.child, p.ending = nil, ending
	if p.wanted && life.Err() == nil {
		p.exits = append(p.exits, Exit{time.Now(), ending})
		p.say("%s ended by itself: %s", p.Name, ending)
	}
	p.wanted = p.wanted && p.supervised
}

// Start starts the process and waits until it runs. A supervised process that does not start is tried again
// until ctx ends.
func (p *Process) Start(ctx context.Context) error {
	p.RequestStart()
	err := p.await(ctx, func() bool { return p.child != nil || !p.wanted })
	p.mu.Lock()
	defer p.mu.Unlock()
	return errors.Join(err, p.failed)
}

// RequestStart lets the process start and does not wait for it.
func (p *Process) RequestStart() { p.update(func() { p.wanted, p.failed = true, nil }) }

// AwaitRunning waits until the process runs.
func (p *Process) AwaitRunning(ctx context.Context) error {
	return p.await(ctx, func() bool { return p.child != nil })
}

// AwaitExit waits until the process has ended by itself, and returns its first such end.
func (p *Process) AwaitExit(ctx context.Context) (Exit, error) {
	if err := p.await(ctx, func() bool { return len(p.exits) > 0 }); err != nil {
		return Exit{}, err
	}
	return p.Exits()[0], nil
}

// Kill ends the process and its children at once (SIGKILL). It stays down until it is started.
func (p *Process) Kill(ctx context.Context) error { return p.StopWith(ctx, syscall.SIGKILL) }

// Stop asks the process to end in its orderly way. It stays down until it is started. When ctx ends first the
// process is killed, and that is an error.
func (p *Process) Stop(ctx context.Context) error { return p.StopWith(ctx, p.stopSignal) }

// StopWith is Stop with another signal.
func (p *Process) StopWith(ctx context.Context, sig syscall.Signal) error {
	if p.supervised { // it may be between two starts
		if err := p.AwaitRunning(ctx); err != nil {
			return err
		}
	}
	p.update(func() { p.wanted = false })
	if err := p.Signal(sig); err != nil {
		return err
	}
	err := p.await(ctx, func() bool { return p.child == nil })
	if err != nil {
		err = errors.Join(fmt.Errorf("%w: it did not end by %s and is killed", err, sig),
			p.Signal(syscall.SIGKILL))
	}
	return err
}

// Restart stops the process, starts it again and waits until it is ready.
func (p *Process) Restart(ctx context.Context) error {
	if err := p.Stop(ctx); err != nil {
		return err
	}
	if err := p.Start(ctx); err != nil {
		return err
	}
	return p.Ready(ctx)
}

// SetEnv replaces the further variables of the next starts; they win over the ordinary ones. A name without a
// value takes an ordinary variable away.
func (p *Process) SetEnv(env ...string) { p.update(func() { p.env = env }) }

// SetBinaries makes the next starts use the binaries of another folder; "" is the deployment's.
func (p *Process) SetBinaries(dir string) { p.update(func() { p.binaries = dir }) }

// Ready waits until the process reports that it is ready at its operations port; one without such a port,
// until its listener accepts connections. It fails when an unsupervised process ends first.
func (p *Process) Ready(ctx context.Context) error {
	return poll.Until(ctx, p.Name+" is ready", func() error {
		if !p.supervised && !p.Running() {
			return poll.Permanent(errors.New("it has ended: " + p.Ending()))
		}
		if p.Admin == "" && p.URL == "" {
			return nil // its start waits until it is ready
		}
		if p.Admin == "" {
			return dial(strings.TrimPrefix(p.URL, "http://"))
		}
		return Probe(ctx, "http://"+p.Admin+"/readyz?verbose")
	})
}

// Ending says how the last child ended: "without an error", "exit status 1", "signal: killed", …
func (p *Process) Ending() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ending
}

// Running reports whether a child runs, paused or not.
func (p *Process) Running() bool { return p.Pid() != 0 }

// Pid is the process id of the child, or 0.
func (p *Process) Pid() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.child == nil || !p.child.Running() {
		return 0
	}
	return p.child.Pid()
}

// Starts is how often the process was started.
func (p *Process) Starts() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.starts
}

// Exits are the ends that were not asked for.
func (p *Process) Exits() []Exit {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]Exit(nil), p.exits...)
}

// close ends the process for good, paused or not.
func (p *Process) close(grace time.Duration) error {
	p.update(func() { p.wanted = false })
	_ = p.Resume()
	p.mu.Lock()
	child := p.child
	p.mu.Unlock()
	if child == nil {
		return nil
	}
	return child.Stop(p.stopSignal, grace)
}

func dial(address string) error {
	c, err := net.DialTimeout("tcp", address, 2*time.Second)
	if err != nil {
		return err
	}
	return c.Close()
}
