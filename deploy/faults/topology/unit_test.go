package topology

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"storefront.internal/deploy/local/process"
)

func sleeper(t *testing.T, args ...string) *Unit {
	t.Helper()
	life, stop := context.WithCancel(context.Background())
	u := newUnit(life, "sleeper", t.Logf, func(context.Context) (*process.Process, error) {
		return process.Start(process.Spec{Name: "sleeper", Path: "/bin/sh", Args: append([]string{"-c"}, args...)})
	})
	t.Cleanup(func() {
		stop()
		_ = u.close(10*time.Second, syscall.SIGKILL)
		<-u.kept
	})
	return u
}

func patient(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// What is killed on purpose stays down until it may come back, and is no fall.
func TestKillAndStart(t *testing.T) {
	t.Parallel()
	u, ctx := sleeper(t, "sleep 1000"), patient(t)
	if err := u.Start(ctx); err != nil {
		t.Fatal(err)
	}
	first := u.process.Pid()
	if err := u.Kill(ctx); err != nil {
		t.Fatal(err)
	}
	if u.process != nil {
		t.Error("it runs after a kill")
	}
	if err := u.Start(ctx); err != nil {
		t.Fatal(err)
	}
	if u.process.Pid() == first || len(u.Falls()) != 0 {
		t.Errorf("pid %d again, falls %v", first, u.Falls())
	}
}

// What ends by itself comes back, and that is counted.
func TestFalls(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	u, ctx := sleeper(t, "test -e "+dir+"/once && sleep 1000; touch "+dir+"/once; exit 3"), patient(t)
	if err := u.Start(ctx); err != nil {
		t.Fatal(err)
	}
	if err := u.wait(ctx, func() bool { return u.starts == 2 && u.process != nil }); err != nil {
		t.Fatal(err)
	}
	if f := u.Falls(); len(f) != 1 || f[0].Ending != "exit status 3" {
		t.Errorf("falls %v", f)
	}
}

// A stop reaches the children too, and so does the end of the stop.
func TestPauseReachesChildren(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "ticks")
	u, ctx := sleeper(t, "(while :; do echo x >> "+file+"; sleep 0.02; done) & wait"), patient(t)
	if err := u.Start(ctx); err != nil {
		t.Fatal(err)
	}
	grows := func() error {
		before, _ := os.Stat(file)
		for ctx.Err() == nil {
			if now, err := os.Stat(file); err == nil && (before == nil || now.Size() > before.Size()) {
				return nil
			}
			_ = Sleep(ctx, 10*time.Millisecond)
		}
		return errors.New("it stands still")
	}
	if err := grows(); err != nil {
		t.Fatal(err)
	}
	if err := u.Pause(); err != nil {
		t.Fatal(err)
	}
	for _, pid := range append(childrenOf(u.process.Pid()), u.process.Pid()) {
		if err := stands(ctx, pid); err != nil {
			t.Error(err)
		}
	}
	if err := u.Continue(); err != nil {
		t.Fatal(err)
	}
	if err := grows(); err != nil {
		t.Fatal(err)
	}
	if err := u.Kill(ctx); err != nil {
		t.Fatal(err)
	}
}

// stands waits until a process is stopped.
func stands(ctx context.Context, pid int) error {
	for {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			return err
		}
		text := string(stat)
		if strings.HasPrefix(text[strings.LastIndexByte(text, ')')+1:], " T") {
			return nil
		}
		if err := Sleep(ctx, 10*time.Millisecond); err != nil {
			return fmt.Errorf("process %d is not stopped: %s", pid, text)
		}
	}
}

func TestPorts(t *testing.T) {
	t.Parallel()
	p := newPorts()
	seen := map[int]bool{}
	for range 50 {
		port, err := p.take()
		if err != nil || seen[port] || port < lowestPort || port >= highestPort {
			t.Fatalf("port %d: %v", port, err)
		}
		seen[port] = true
	}
}
