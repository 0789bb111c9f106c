// Package service runs a process's parts: it starts them in the order in which they were added, stops them in reverse with one deadline for all, and ends on SIGTERM, SIGINT, a
// cancelled context, or the first loop that fails.
//
// A part goes through:
//
//	added ──start──▶ running ──stop (once)──▶ stopped
//	   └──start fails──▶ never stopped; the parts before it are stopped in reverse
//
// It is the only package that listens for operating-system signals. It refuses restarts of single parts: a loop that panics or returns an error ends the process in order, and whatever
// supervises the process starts it anew.
package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"sync"
	"syscall"
	"time"
)

// Config says how a Group ends.
type Config struct {
	Logger      *slog.Logger
	StopTimeout time.Duration    // for all stops together; 30 s when zero
	Signals     <-chan os.Signal // SIGTERM and SIGINT of the process when nil
	Now         func() time.Time
}

// Group is the parts of one process. Add and Loop come before Run, which runs once.
type Group struct {
	cfg    Config
	parts  []part
	failed chan error
	stop   chan struct{}
	once   sync.Once
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
	return &Group{cfg: cfg, failed: make(chan error, 1), stop: make(chan struct{})}
}

// Add adds a part. start returns when the part runs; its context ends only when Run gives up starting. stop returns when the part has ended, or when its context ends. Either may be nil.
func (g *Group) Add(name string, start, stop func(context.Context) error) {
	g.parts = append(g.parts, part{name: name, start: start, stop: stop})
}

// Fail ends the group with err; the first one counts. It may be called at any time and from any goroutine.
func (g *Group) Fail(err error) {
	select {
	case g.failed <- err:
	default:
	}
}

// Stop ends the group in order, as a signal does. It may be called more than once; it does not wait.
func (g *Group) Stop() { g.once.Do(func() { close(g.stop) }) }

// Run starts every part, waits for an end, and stops the started ones in reverse. It returns nil when the end was asked for and every stop succeeded in time. A second signal
// changes nothing: what is in flight keeps its time.
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
	case <-g.stop:
		g.cfg.Logger.Info("ending on request")
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
			g.cfg.Logger.Warn("already ending; the signal does not shorten it", "signal", s.String())
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

// stopOne does not trust the part to obey its context: past the deadline it is left behind, and the parts before it still get their call.
func (g *Group) stopOne(ctx context.Context, p part) error {
	result := make(chan error, 1)
	go func() { result <- guard(p.name, func() error { return p.stop(ctx) }) }()
	select {
	case err := <-result:
		return err
	case <-ctx.Done():
		select { // a part that obeys answers at the deadline, too
		case err := <-result:
			return err
		case <-time.After(100 * time.Millisecond):
			return fmt.Errorf("did not end in time: %w", context.Cause(ctx))
		}
	}
}
