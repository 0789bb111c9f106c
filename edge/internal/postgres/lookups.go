package postgres

import (
	"context"
	"fmt"
)

// maxLookups is how many look-ups of each kind may be in flight, so that a flood of misses does not become the
// database's, and one kind does not starve the other: 16 of both together.
const maxLookups = 8

// gate lets a bounded number of look-ups through; the others wait for their turn, or for the end of their context.
type gate chan struct{}

func newGate() gate { return make(gate, maxLookups) }

func (g gate) enter(ctx context.Context) error {
	select {
	case g <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("waiting for a look-up: %w", ctx.Err())
	}
}

func (g gate) leave() { <-g }
