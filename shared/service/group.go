// Package service runs the parts of a process: it starts them in the order in which they were added, stops
// them in reverse order within one deadline, and ends on SIGTERM, SIGINT, a cancelled context, or the first
// loop that fails.
//
//	added ──start──▶ running ──stop (once)──▶ stopped
//	   └──start fails──▶ never stopped; the parts before it are stopped in reverse
//
// It is the only package that listens for operating-system signals. It never restarts a single part: a loop
// that panics or returns an error ends the process in order, and the supervisor of the process starts it
// again.
package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"
)

// Config configures a Group.
type Config struct {
	Logger      *slog.Logger
	StopTimeout time.Duration    // for all stops together; 30 s when zero
	Signals     <-chan os.Signal // SIGTERM and SIGINT of the process when nil
	Now         func() time.Time
}

// Group is the list of parts of one process. Add and AddLoop are called before Run, and Run once.
type Group struct {
	cfg    Config
	parts  []part
	failed chan error
}

type part struct {
	name  string
	start func(context.Context) error
	stop  func(context.Context) error
}

// New returns an empty Group.
func New(cfg Config) *Group {
	if cfg.StopTimeout <= 0 {
		cfg.StopTimeout = 30 * time.Second
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return &Group{cfg: cfg, failed: make(chan error, 1)}
}

// Add adds a part; start and stop may be nil. start returns when the part runs; its context ends only when
// Run gives up starting. stop returns when the part has ended, or when its context ends.
func (g *Group) Add(name string, start, stop func(context.Context) error) {
	g.parts = append(g.parts, part{name: name, start: start, stop: stop})
}

// Fail ends the group with err; only the first call counts. It is safe for concurrent use.
func (g *Group) Fail(err error) {
	select {
	case g.failed <- err:
	default:
	}
}

// Run starts the parts, waits for a reason to end, and stops the started parts in reverse. It returns nil
// after a signal or a cancelled context when all parts stopped in time. A second signal changes nothing:
// requests in flight keep their time.
func (g *Group) Run(ctx context.Context) error {
	signals, release := g.signals()
	defer release()
	started, err := g.startAll(ctx)
	if err == nil {
		err = g.wait(ctx, signals)
	}
	done := make(chan struct{})
	defer close(done)
	go g.ignoreSignals(signals, done)
	return errors.Join(err, g.stopAll(ctx, started))
}

func (g *Group) signals() (<-chan os.Signal, func()) {
	if g.cfg.Signals != nil {
		return g.cfg.Signals, func() {}
	}
	c := make(chan os.Signal, 4)
	signal.Notify(c, syscall.SIGTERM, syscall.SIGINT)
	return c, func() { signal.Stop(c) }
}

func (g *Group) startAll(ctx context.Context) ([]part, error) {
	for i, p := range g.parts {
		if p.start == nil {
			continue
		}
		begun := g.cfg.Now()
		if err := guard(p.name, func() error { return p.start(ctx) }); err != nil {
			g.cfg.Logger.Error("start failed", "part", p.name, "error", err)
			return g.parts[:i], fmt.Errorf("start %s: %w", p.name, err)
		}
		g.cfg.Logger.Info("started", "part", p.name, "took", g.cfg.Now().Sub(begun).String())
	}
	return g.parts, nil
}

func (g *Group) wait(ctx context.Context, signals <-chan os.Signal) error {
	select {
	case err := <-g.failed:
		g.cfg.Logger.Error("ending on failure", "error", err)
		return err
	case s := <-signals:
		g.cfg.Logger.Info("ending on signal", "signal", s.String())
	case <-ctx.Done():
		g.cfg.Logger.Info("ending on context")
	}
	return nil
}

func (g *Group) ignoreSignals(signals <-chan os.Signal, done <-chan struct{}) {
	for {
		select {
		case s, ok := <-signals:
			if !ok {
				return
			}
			g.cfg.Logger.Warn("already ending; a second signal does not shorten it", "signal", s.String())
		case <-done:
			return
		}
	}
}

func (g *Group) stopAll(ctx context.Context, parts []part) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), g.cfg.StopTimeout)
	defer cancel()
	var errs []error
	for _, p := range slices.Backward(parts) {
		if p.stop == nil {
			continue
		}
		begun := g.cfg.Now()
		err := g.stopOne(ctx, p)
		took := g.cfg.Now().Sub(begun).String()
		if err != nil {
			g.cfg.Logger.Error("stop failed", "part", p.name, "took", took, "error", err)
			errs = append(errs, fmt.Errorf("stop %s: %w", p.name, err))
			continue
		}
		g.cfg.Logger.Info("stopped", "part", p.name, "took", took)
	}
	return errors.Join(errs...)
}

// stopOne stops one part. A part that ignores its context is abandoned at the deadline, so that the parts
// before it are still stopped.
func (g *Group) stopOne(ctx context.Context, p part) error {
	result := make(chan error, 1)
	go func() { result <- guard(p.name, func() error { return p.stop(ctx) }) }()
	select {
	case err := <-result:
		return err
	case <-ctx.Done():
		select { // a part that obeys its context returns at the deadline too
		case err := <-result:
			return err
		case <-time.After(100 * time.Millisecond):
			return fmt.Errorf("did not end in time: %w", context.Cause(ctx))
		}
	}
}
