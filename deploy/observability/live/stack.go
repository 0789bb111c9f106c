package live

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// env are the addresses and keys that a local stack prints.
type env map[string]string

// readyWithin is how long a stack may take to come up, its first load included.
const readyWithin = 4 * time.Minute

// process is a child that is asked to end and then waited for.
type process struct {
	cmd   *exec.Cmd
	ended chan struct{}
}

func start(ctx context.Context, log io.Writer, dir string, variables []string, name string, args ...string) (*process, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, log, log
	cmd.Env = append(os.Environ(), variables...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGINT) }
	cmd.WaitDelay = time.Minute
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	p := &process{cmd: cmd, ended: make(chan struct{})}
	go func() {
		_ = cmd.Wait() // how it ended is in its log
		close(p.ended)
	}()
	return p, nil
}

func (p *process) stop() {
	_ = p.cmd.Process.Signal(syscall.SIGINT) // it may have ended by itself
	<-p.ended
}

// startStack runs the stack of the checkout's binaries in a folder of its own, and waits until it says that it is ready.
func startStack(ctx context.Context, root, dir, portBase string) (*process, env, error) {
	if err := os.WriteFile(filepath.Join(dir, "go.work"), []byte("go 1.26.0\n"), 0o600); err != nil {
		return nil, nil, err
	}
	for _, name := range []string{"bin", ".cache"} {
		if err := os.Symlink(filepath.Join(root, name), filepath.Join(dir, name)); err != nil {
			return nil, nil, err
		}
	}
	log, err := os.Create(filepath.Join(dir, "stack.log"))
	if err != nil {
		return nil, nil, err
	}
	p, err := start(ctx, log, dir, []string{"BACKENDS=real", "PORT_BASE=" + portBase}, filepath.Join(root, "bin", "local"), "run")
	if err != nil {
		return nil, nil, err
	}
	file := filepath.Join(dir, ".run", "demo.env")
	for deadline := time.Now().Add(readyWithin); time.Now().Before(deadline); time.Sleep(200 * time.Millisecond) {
		select {
		case <-p.ended:
			return nil, nil, errors.New("the stack ended: " + log.Name())
		default:
		}
		if e, err := readEnv(file); err == nil {
			return p, e, nil
		}
	}
	p.stop()
	return nil, nil, errors.New("the stack is not ready in time: " + log.Name())
}

func readEnv(path string) (env, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	e := env{}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if name, value, ok := strings.Cut(lines.Text(), "="); ok {
			e[name] = value
		}
	}
	return e, nil
}
