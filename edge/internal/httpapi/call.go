package httpapi

import (
	"context"
	"sync"
	"time"
)

// call is the context of the work for one request: it ends with its deadline, with the server, or when the request is
// answered. What makes it a real one, a timer and a place among the server's children, is made when somebody waits for
// its end; a request that is answered from memory never does.
type call struct {
	base     context.Context //nolint:containedctx // the server's own
	deadline time.Time

	mu     sync.Mutex
	real   context.Context //nolint:containedctx // nil until it is needed
	cancel context.CancelFunc
	ended  bool
}

// Deadline implements context.Context.
func (c *call) Deadline() (time.Time, bool) { return c.deadline, true }

// Done implements context.Context.
func (c *call) Done() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.real == nil {
		c.real, c.cancel = context.WithDeadline(c.base, c.deadline)
		if c.ended {
			c.cancel()
		}
	}
	return c.real.Done()
}

// Err implements context.Context.
func (c *call) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.real != nil:
		return c.real.Err()
	case c.base.Err() != nil:
		return c.base.Err()
	case c.ended:
		return context.Canceled
	case !time.Now().Before(c.deadline):
		return context.DeadlineExceeded
	}
	return nil
}

// Value implements context.Context. Package context finds the real one by it.
func (c *call) Value(key any) any {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.real != nil {
		return c.real.Value(key)
	}
	return c.base.Value(key)
}

// end ends the call.
func (c *call) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
	if c.cancel != nil {
		c.cancel()
	}
}
