package process

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

func shell(t *testing.T, script string, log *bytes.Buffer) *Process {
	t.Helper()
	s := Spec{Name: "sh", Path: "/bin/sh", Args: []string{"-c", script}}
	if log != nil {
		s.Log = log
	}
	p, err := Start(s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Kill() })
	return p
}

func TestEnding(t *testing.T) {
	t.Parallel()
	f := func(script, want string) {
		t.Helper()
		if got := shell(t, script, nil).Ending(); got != want {
			t.Errorf("%q ended %q, want %q", script, got, want)
		}
	}
	f("exit 0", "without an error")
	f("exit 3", "exit status 3")
	f("kill -9 $$", "signal: killed")
}

func TestStartOfWhatIsNotThere(t *testing.T) {
	t.Parallel()
	if _, err := Start(Spec{Name: "ghost", Path: "/no/such/file"}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error %v", err)
	}
}

func TestStopAsksFirst(t *testing.T) {
	t.Parallel()
	log := &bytes.Buffer{}
	p := shell(t, `trap 'echo bye; exit 0' TERM; echo up; while :; do sleep 0.05; done`, log)
	awaitUp(t, p)
	if err := p.Stop(syscall.SIGTERM, 10*time.Second); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(log.String(), "bye") || p.Err() != nil {
		t.Errorf("log %q, end %v", log, p.Err())
	}
	if err := p.Stop(syscall.SIGTERM, time.Second); err != nil {
		t.Errorf("second stop: %v", err)
	}
}

func TestStopKillsInTheEnd(t *testing.T) {
	t.Parallel()
	p := shell(t, `trap '' TERM; while :; do sleep 0.05; done`, nil)
	awaitUp(t, p)
	if err := p.Stop(syscall.SIGTERM, 100*time.Millisecond); err == nil ||
		!strings.Contains(err.Error(), "killed") {
		t.Errorf("error %v", err)
	}
	if p.Running() {
		t.Error("it runs")
	}
}

// awaitUp waits until the shell has set its trap: then it has a child.
func awaitUp(t *testing.T, p *Process) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	err := p.WaitReady(ctx, func(context.Context) error {
		children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", p.Pid(), p.Pid()))
		if os.IsNotExist(err) {
			t.Skip("no /proc here")
		}
		if err == nil && len(children) == 0 {
			err = errors.New("no child yet")
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestWaitReadySaysWhatWasWrong(t *testing.T) {
	t.Parallel()
	never := func(context.Context) error { return errors.New("door closed") }
	p := shell(t, "exit 7", nil)
	<-p.Done()
	if err := p.WaitReady(t.Context(), never); err == nil || !strings.Contains(err.Error(), "exit status 7") {
		t.Errorf("error %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if err := shell(t, "sleep 60", nil).WaitReady(ctx, never); !errors.Is(err, context.DeadlineExceeded) ||
		!strings.Contains(err.Error(), "door closed") {
		t.Errorf("error %v", err)
	}
}

// The children of a killed parent die too: this test is the parent of itself, and that is the parent of a
// sleeper.
func TestChildDiesWithItsParent(t *testing.T) {
	t.Parallel()
	if os.Getenv("PROCESS_TEST_PARENT") == "1" {
		p := shell(t, "sleep 600", nil)
		fmt.Fprintf(os.Stderr, "sleeper=%d\n", p.Pid())
		<-p.Done()
		return
	}
	if _, err := os.Stat("/proc/self"); err != nil {
		t.Skip("only Linux ties a child to its parent")
	}
	tail := &Tail{}
	parent, err := Start(Spec{
		Name: "parent", Path: os.Args[0], Args: []string{"-test.run=TestChildDiesWithItsParent"},
		Env: append(os.Environ(), "PROCESS_TEST_PARENT=1"), Log: tail,
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	pid := 0
	if err := parent.WaitReady(ctx, func(context.Context) error {
		_, rest, _ := strings.Cut(tail.String(), "sleeper=")
		number, _, _ := strings.Cut(rest, "\n")
		pid, err = strconv.Atoi(strings.TrimSpace(number))
		return err
	}); err != nil {
		t.Fatal(err)
	}
	parent.Kill()
	for ctx.Err() == nil && alive(pid) {
		time.Sleep(10 * time.Millisecond)
	}
	if alive(pid) {
		t.Errorf("the sleeper %d outlives its parent", pid)
	}
}

func alive(pid int) bool {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !bytes.Contains(status, []byte(") Z "))
}

func TestTailKeepsTheEnd(t *testing.T) {
	t.Parallel()
	tail := &Tail{}
	for i := range 10_000 {
		fmt.Fprintf(tail, "%d ", i)
	}
	if s := tail.String(); len(s) > tailBytes || !strings.HasSuffix(s, "9999") {
		t.Errorf("%d bytes, end %q", len(s), s[len(s)-10:])
	}
}
