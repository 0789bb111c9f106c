package stack

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"storefront.internal/deploy/local/process"
	"storefront.internal/deploy/stack/poll"
)

func shell(t *testing.T, supervised bool, script string) *Process {
	t.Helper()
	life, stop := context.WithCancel(context.Background())
	p := newProcess(life, &Process{Name: "shell", supervised: supervised, say: t.Logf,
		stopSignal: syscall.SIGKILL,
		launch: func(_ context.Context, binaries string, env []string) (*process.Process, error) {
			return process.Start(process.Spec{Name: "shell", Path: binaries + "/bin/sh",
				Args: []string{"-c", script}, Env: env})
		}})
	t.Cleanup(func() {
		stop()
		_ = p.close(10 * time.Second)
		<-p.ended
	})
	return p
}

func minute(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func ok(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// A process that was killed on purpose stays down until it is started, and the kill is not counted as an
// exit.
func TestKillAndStart(t *testing.T) {
	t.Parallel()
	for _, supervised := range []bool{true, false} {
		p, ctx := shell(t, supervised, "sleep 1000"), minute(t)
		ok(t, p.Start(ctx))
		first := p.Pid()
		ok(t, p.Kill(ctx))
		if p.Running() {
			t.Error("it runs after a kill")
		}
		ok(t, p.Start(ctx))
		if p.Pid() == first || len(p.Exits()) != 0 || p.Starts() != 2 {
			t.Errorf("pid %d again, %d starts, exits %v", first, p.Starts(), p.Exits())
		}
	}
}

// A supervised process that ends by itself is started again, any other is not; both ends are counted.
func TestExits(t *testing.T) {
	t.Parallel()
	for _, supervised := range []bool{true, false} {
		dir := t.TempDir()
		p, ctx := shell(t, supervised, "test -e "+dir+"/once && exec sleep 1000; touch "+dir+
			"/once; exit 3"), minute(t)
		ok(t, p.Start(ctx))
		exit, err := p.AwaitExit(ctx)
		if err != nil || exit.Ending != "exit status 3" {
			t.Errorf("exit %+v, %v", exit, err)
		}
		if supervised {
			ok(t, p.await(ctx, func() bool { return p.starts == 2 && p.child != nil }))
		} else if err := p.Ready(ctx); err == nil || !strings.Contains(err.Error(), "exit status 3") ||
			p.Running() {
			t.Errorf("ready after its end: %v", err)
		}
	}
}

// A process that cannot be started is an error at once, or, supervised, at the end of the context.
func TestStartFails(t *testing.T) {
	t.Parallel()
	p := shell(t, false, "")
	p.SetBinaries("/no/such/folder")
	if err := p.Start(minute(t)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error %v", err)
	}
	p.SetBinaries("")
	ok(t, p.Start(minute(t)))
	p = shell(t, true, "sleep 1000")
	p.SetBinaries("/no/such/folder")
	short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := p.Start(short); !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error %v", err)
	}
	p.SetBinaries("")
	ok(t, p.AwaitRunning(minute(t)))
}

// Variables that are set hold from the next start on.
func TestSetEnv(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "out")
	p, ctx := shell(t, false, `echo "$WORD" >> `+file+`; sleep 1000`), minute(t)
	for _, word := range []string{"first", "second"} {
		p.SetEnv("WORD="+word, "PATH="+os.Getenv("PATH"))
		ok(t, p.Start(ctx), poll.Until(ctx, word, func() error {
			if text, err := os.ReadFile(file); err != nil || !strings.Contains(string(text), word) {
				return errors.New("not written")
			}
			return nil
		}), p.Kill(ctx))
	}
}

// A pause reaches the children too, and so does its end.
func TestPauseReachesChildren(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "ticks")
	p, ctx := shell(t, true, "(while :; do echo x >> "+file+"; sleep 0.02; done) & wait"), minute(t)
	ok(t, p.Start(ctx))
	size := func() int64 {
		info, err := os.Stat(file)
		if err != nil {
			return 0
		}
		return info.Size()
	}
	grows := func() error {
		before := size()
		return poll.Until(ctx, "the file", func() error {
			if size() <= before {
				return errors.New("it does not grow")
			}
			return nil
		})
	}
	ok(t, grows(), p.Pause())
	for _, pid := range append(childrenOf(p.Pid()), p.Pid()) {
		ok(t, poll.Until(ctx, "the pause", func() error {
			if state, _ := stateOf(pid); state != "T" {
				return errors.New(state)
			}
			return nil
		}))
	}
	if !p.Paused() {
		t.Error("it is not reported as paused")
	}
	ok(t, p.Resume(), grows(), p.Kill(ctx))
}

// A process that ignores the signal of an orderly end is killed at the end of the context, and that is an
// error.
func TestStopKillsInTheEnd(t *testing.T) {
	t.Parallel()
	p := shell(t, false, `trap '' TERM; while :; do sleep 0.02; done`)
	p.stopSignal = syscall.SIGTERM
	ok(t, p.Start(minute(t)), poll.Until(minute(t), "the trap", func() error {
		if len(childrenOf(p.Pid())) == 0 {
			return errors.New("not set")
		}
		return nil
	}))
	short, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := p.Stop(short); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v", err)
	}
	ok(t, p.await(minute(t), func() bool { return p.child == nil }))
}
