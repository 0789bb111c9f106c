package service

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
)

// panicError tells that a part panicked. It names the panic value's type and not the value, which may quote a shopper's data; the stack is apart.
type panicError struct {
	part  string
	kind  string
	stack []byte
}

// Error implements error.
func (e *panicError) Error() string { return fmt.Sprintf("%s panicked with %s", e.part, e.kind) }

// guard turns a panic of fn into an error.
func guard(name string, fn func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &panicError{part: name, kind: fmt.Sprintf("%T", v), stack: debug.Stack()}
		}
	}()
	return fn()
}

// Loop adds a part that is one goroutine. run goes on until its context ends, which is what stopping the part does; the stop then waits for it. A run that returns nil has done its work; one
// that returns an error while its context lives, or panics, ends the whole group.
func (g *Group) Loop(name string, run func(context.Context) error) {
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
			ended <- err // a second stop finds it again
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
