// Package poll waits for a condition that nothing announces: it asks again and again until the condition
// holds or the context ends, and reports what was missing at the end.
package poll

import (
	"context"
	"errors"
	"fmt"
	"time"
)

const interval = 50 * time.Millisecond

// permanent is an error after which asking again is pointless.
type permanent struct{ error }

func (p permanent) Unwrap() error { return p.error }

// Permanent makes Until return err at once.
func Permanent(err error) error { return permanent{err} }

// Until calls ask until it returns nil. It ends early with a Permanent error, or with the context; then the
// error names what was waited for and carries the last error of ask.
func Until(ctx context.Context, what string, ask func() error) error {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		err := ask()
		if err == nil {
			return nil
		}
		if p := (permanent{}); errors.As(err, &p) {
			return fmt.Errorf("%s: %w", what, p.error)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("%s: %w (last: %w)", what, ctx.Err(), err)
		}
	}
}

// Within is Until with a time limit.
func Within(ctx context.Context, limit time.Duration, what string, ask func() error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return Until(ctx, what, ask)
}
