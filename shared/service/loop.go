package service

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
)

// panicError is the error of a part that panicked. It names the type of the panic value and not the value,
// which may quote personal data.
type panicError struct {
	part  string
	kind  string
	stack []byte
}

// Error implements error.
func (e *panicError) Error() string { return fmt.Sprintf("%s panicked with %s", e.part, e.kind) }

// guard calls fn and returns a panic as an error.
func guard(name string, fn func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &panicError{part: name, kind: fmt.Sprintf("%T", v), stack: debug.Stack()}
		}
	}()
	return fn()
}

// AddLoop adds a part that is one goroutine. run works until its context ends, which stopping the part does;
// the stop waits for it. A run that returns nil has completed. A run that panics, or returns an error before
// its context ends, ends the whole group.
func (g *Group) AddLoop(name string, run func(context.Context) error) {
	var cancel context.CancelFunc
	ended := make(chan error, 1)
	start := func(ctx context.Context) error {
		ctx, cancel = context.WithCancel(context.WithoutCancel(ctx))
		go func() {
			err := guard(name, func() error { return run(ctx) })
			g.reportLoop(ctx, name, err)
			ended <- err
		}()
		return nil
	}
	stop := func(ctx context.Context) error {
		cancel()
		select {
		case err := <-ended:
			ended <- err // for a second stop
			if errors.Is(err, context.Canceled) {
				return nil
			}
			return err
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	g.Add(name, start, stop)
}

func (g *Group) reportLoop(ctx context.Context, name string, err error) {
	if err == nil || (ctx.Err() != nil && errors.Is(err, context.Canceled)) {
		return
	}
	var p *panicError
	if errors.As(err, &p) {
		g.cfg.Logger.Error("panic", "part", name, "type", p.kind, "stack", string(p.stack))
	}
	g.Fail(fmt.Errorf("loop %s: %w", name, err))
}
