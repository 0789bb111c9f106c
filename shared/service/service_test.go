package service

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// journal remembers calls in their order.
type journal struct {
	mu    sync.Mutex
	lines []string
}

func (j *journal) add(line string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, line)
}

func (j *journal) part(g *Group, name string) {
	g.Add(name,
		func(context.Context) error { j.add("start " + name); return nil },
		func(context.Context) error { j.add("stop " + name); return nil })
}

func (j *journal) want(t *testing.T, lines ...string) {
	t.Helper()
	if !slices.Equal(j.lines, lines) {
		t.Errorf("got %v, want %v", j.lines, lines)
	}
}

func TestRunStopsInReverse(t *testing.T) {
	t.Parallel()
	signals := make(chan os.Signal, 1)
	g, j := New(Config{Signals: signals}), &journal{}
	j.part(g, "a")
	j.part(g, "b")
	g.Add("c", func(context.Context) error { signals <- syscall.SIGTERM; return nil }, nil)
	if err := g.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	j.want(t, "start a", "start b", "stop b", "stop a")
}

func TestRunStopsWhatStartedWhenOneFails(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(context.Context) error{
		"error": func(context.Context) error { return errors.New("boom") },
		"panic": func(context.Context) error { panic("secret value") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g, j := New(Config{}), &journal{}
			j.part(g, "a")
			g.Add("bad", start, func(context.Context) error { j.add("stop bad"); return nil })
			j.part(g, "c")
			err := g.Run(t.Context())
			if err == nil || !strings.Contains(err.Error(), "start bad") ||
				strings.Contains(err.Error(), "secret value") {
				t.Errorf("got %v", err)
			}
			j.want(t, "start a", "stop a")
		})
	}
}

func TestLoopFailureEndsTheGroup(t *testing.T) {
	t.Parallel()
	boom := errors.New("boom")
	g, j := New(Config{}), &journal{}
	j.part(g, "a")
	g.AddLoop("calm", func(ctx context.Context) error { <-ctx.Done(); j.add("calm ended"); return ctx.Err() })
	g.AddLoop("done", func(context.Context) error { return nil })
	g.AddLoop("bad", func(context.Context) error { return boom })
	if err := g.Run(t.Context()); !errors.Is(err, boom) {
		t.Errorf("got %v", err)
	}
	j.want(t, "start a", "calm ended", "stop a")
}

func TestLoopPanicEndsTheGroup(t *testing.T) {
	t.Parallel()
	g := New(Config{})
	g.AddLoop("bad", func(context.Context) error { panic(errors.New("buyer@example.com")) })
	err := g.Run(t.Context())
	if err == nil || !strings.Contains(err.Error(), "bad panicked with *errors.errorString") ||
		strings.Contains(err.Error(), "buyer") {
		t.Errorf("got %v", err)
	}
}

func TestStopMayRunTwice(t *testing.T) {
	t.Parallel()
	g := New(Config{})
	g.AddLoop("l", func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
	p := g.parts[0]
	if err := errors.Join(p.start(t.Context()), p.stop(t.Context()), p.stop(t.Context())); err != nil {
		t.Fatal(err)
	}
}

func TestSecondSignalDoesNotShorten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		signals := make(chan os.Signal, 2)
		g, j := New(Config{Signals: signals}), &journal{}
		g.Add("slow", nil, func(ctx context.Context) error {
			signals <- syscall.SIGTERM
			select {
			case <-time.After(5 * time.Second):
				j.add("drained")
			case <-ctx.Done():
			}
			return nil
		})
		signals <- syscall.SIGINT
		if err := g.Run(t.Context()); err != nil {
			t.Error(err)
		}
		j.want(t, "drained")
	})
}

func TestDeadlineAbandonsAPartThatHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		signals := make(chan os.Signal, 1)
		signals <- syscall.SIGTERM
		g, j, hang := New(Config{StopTimeout: 3 * time.Second, Signals: signals}), &journal{},
			make(chan struct{})
		j.part(g, "a")
		g.Add("deaf", nil, func(context.Context) error { <-hang; return nil })
		begun := time.Now()
		err := g.Run(t.Context())
		if took := time.Since(begun); took > 4*time.Second || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v after %s", err, took)
		}
		j.want(t, "start a", "stop a")
		close(hang)
	})
}

func TestContextEndsTheGroupAndStopsStillHaveTime(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	g := New(Config{})
	var stopErr error
	g.Add("a", func(context.Context) error { cancel(); return nil },
		func(ctx context.Context) error { stopErr = ctx.Err(); return nil })
	if err := g.Run(ctx); err != nil || stopErr != nil {
		t.Errorf("%v %v", err, stopErr)
	}
}

func TestEveryCallsAtOnceAndUntilTheContextEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		begun := time.Now()
		var calls []time.Duration
		Every(ctx, time.Minute, func(context.Context) {
			calls = append(calls, time.Since(begun))
			if len(calls) == 3 {
				cancel()
			}
		})
		if want := []time.Duration{0, time.Minute, 2 * time.Minute}; !slices.Equal(calls, want) {
			t.Errorf("calls at %v, want %v", calls, want)
		}
		Every(ctx, time.Minute, func(context.Context) { t.Error("called although the context has ended") })
	})
}
