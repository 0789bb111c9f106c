package e2e

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// program is a running program of the control plane.
type program struct {
	name string
	cmd  *exec.Cmd
	log  string
	done chan struct{}
	err  error // set when done is closed
}

// start runs a program with a log in dir. It exits together with the test.
func start(dir, name, path string, args ...string) (*program, error) {
	p := &program{name: name, log: filepath.Join(dir, name+".log"), done: make(chan struct{})}
	f, err := os.Create(p.log)
	if err != nil {
		return nil, err
	}
	p.cmd = exec.Command(path, args...)
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

// alive returns an error if the program has exited.
func (p *program) alive() error {
	select {
	case <-p.done:
		return fmt.Errorf("%s ended: %w\n%s", p.name, p.err, p.tail())
	default:
		return nil
	}
}

func (p *program) stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.done:
	case <-time.After(20 * time.Second):
		_ = p.cmd.Process.Kill()
		<-p.done
	}
}

func (p *program) tail() string {
	text, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-3000):])
}

// freePort returns a port without a listener.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	port := l.Addr().(*net.TCPAddr).Port
	return port, l.Close()
}

// wait calls ask until it succeeds, or returns its last error after the timeout.
func wait(within time.Duration, ask func() error) error {
	for end := time.Now().Add(within); ; {
		err := ask()
		if err == nil || time.Now().After(end) {
			return err
		}
		time.Sleep(200 * time.Millisecond)
	}
}
