// Package deadline owns the context of work that usually ends before anybody waits for its end: the timer, and the place
// among its parent's children, are made when somebody asks for Done. A request that is answered from memory, or by calls
// that end by themselves, never has them. It refuses to be a general context: whoever makes one ends it, before the end
// of the one that it was made of.
package deadline

import (
	"context"
	"sync"
	"time"
)

// Context ends with its deadline, with its parent, or by End.
type Context struct {
	parent context.Context //nolint:containedctx // what it is a context of
	at     time.Time

	mu     sync.Mutex
	real   context.Context //nolint:containedctx // nil until it is needed
	cancel context.CancelFunc
	ended  bool
}

// New returns a context that ends at the deadline at the latest.
func New(parent context.Context, at time.Time) *Context {
	if sooner, bounded := parent.Deadline(); bounded && sooner.Before(at) {
		at = sooner
	}
	return &Context{parent: parent, at: at}
}

// Deadline implements context.Context.
func (c *Context) Deadline() (time.Time, bool) { return c.at, true }

// Done implements context.Context. Of a Context in a Context only the inner one gets a timer: it ends first.
func (c *Context) Done() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.real == nil {
		root := c.parent
		for outer, nested := root.(*Context); nested; outer, nested = root.(*Context) {
			root = outer.parent
		}
		c.real, c.cancel = context.WithDeadline(root, c.at)
		if c.ended {
			c.cancel()
		}
	}
	return c.real.Done()
}

// Err implements context.Context.
func (c *Context) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.real != nil:
		return c.real.Err()
	case c.parent.Err() != nil:
		return c.parent.Err()
	case c.ended:
		return context.Canceled
	case !time.Now().Before(c.at):
		return context.DeadlineExceeded
	}
	return nil
}

// Value implements context.Context. Package context finds the real one by it.
func (c *Context) Value(key any) any {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.real != nil {
		return c.real.Value(key)
	}
	return c.parent.Value(key)
}

// End ends the context.
func (c *Context) End() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
	if c.cancel != nil {
		c.cancel()
	}
}
