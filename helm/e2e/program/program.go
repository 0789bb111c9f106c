// Package program runs the programs of a cluster for tests.
package program

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// Program is a running program.
type Program struct {
	name string
	cmd  *exec.Cmd
	log  string
	done chan struct{}
	err  error // set when done is closed
}

// Start runs a program with a log in dir. It exits together with the thread that starts it.
func Start(dir, name, path string, args ...string) (*Program, error) {
	p := &Program{name: name, log: filepath.Join(dir, name+".log"), done: make(chan struct{})}
	f, err := os.Create(p.log)
	if err != nil {
		return nil, err
	}
	p.cmd = exec.Command(path, args...) //nolint:noctx // it ends by Stop
	p.cmd.Dir, p.cmd.Stdout, p.cmd.Stderr = dir, f, f
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := p.cmd.Start(); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	go func() {
		p.err = errors.Join(p.cmd.Wait(), f.Close())
		close(p.done)
	}()
	return p, nil
}

// ID returns the process id.
func (p *Program) ID() int { return p.cmd.Process.Pid }

// Alive returns an error if the program has exited.
func (p *Program) Alive() error {
	select {
	case <-p.done:
		return fmt.Errorf("%s ended: %w\n%s", p.name, p.err, p.tail())
	default:
		return nil
	}
}

// Stop ends the program and waits for it.
func (p *Program) Stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.done:
	case <-time.After(20 * time.Second):
		_ = p.cmd.Process.Kill()
		<-p.done
	}
}

func (p *Program) tail() string {
	text, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-3000):])
}

// Wait calls ask until it succeeds, or returns its last error after the timeout.
func Wait(within time.Duration, ask func() error) error {
	for end := time.Now().Add(within); ; {
		err := ask()
		if err == nil || time.Now().After(end) {
			return err
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// Tool returns the path of a program in a folder. The script that built it pins its version.
func Tool(dir, name string) string {
	found, _ := filepath.Glob(filepath.Join(dir, name+"-*"))
	if len(found) == 0 {
		return filepath.Join(dir, name)
	}
	return found[len(found)-1]
}
