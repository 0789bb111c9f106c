package process

import (
	"context"
	"fmt"
	"time"
)

// WaitReady asks until ready returns nil, the child ends, or the context ends. The error carries the last one
// of ready.
func (p *Process) WaitReady(ctx context.Context, ready func(context.Context) error) error {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		last := ready(ctx)
		if last == nil {
			return nil
		}
		select {
		case <-p.done:
			return fmt.Errorf("%s ended before it was ready: %s", p.name, p.Ending())
		case <-ctx.Done():
			return fmt.Errorf("%s is not ready: %w (last: %w)", p.name, ctx.Err(), last)
		case <-tick.C:
		}
	}
}
