package systemtest

import (
	"context"
	"errors"
	"testing"
	"time"

	"storefront.internal/deploy/stack"
	"storefront.internal/deploy/stack/poll"
)

// slowMachine is how much longer than its limit a wait may last. A limit is several times what a machine of
// its own needs; a shared one stands still for a minute at a time.
const slowMachine = 5

// eventually asks until the answer is nil and fails the test when that takes slowMachine times as long as the
// limit. The time taken is logged, and under `make soak`, which has a machine of its own, more than half of the
// limit fails the test, so that a scenario that becomes slower is noticed.
func eventually(t *testing.T, limit time.Duration, what string, ask func() error) {
	t.Helper()
	began := time.Now()
	if err := poll.Within(context.Background(), slowMachine*limit, what, ask); err != nil {
		t.Fatal(err)
	}
	took := time.Since(began).Round(time.Millisecond)
	if took > time.Second {
		t.Logf("%s: after %s", what, took)
	}
	if soaking() && took > limit/2 {
		t.Errorf("%s took %s, which is more than half of its limit of %s", what, took, limit)
	}
}

// paused returns nil for a process that is stopped by SIGSTOP.
func paused(p *stack.Process) func() error {
	return func() error {
		if !p.Paused() {
			return errors.New(p.Name + " is not paused")
		}
		return nil
	}
}

// dead returns nil for a process that has ended.
func dead(p *stack.Process) func() error {
	return func() error {
		if p.Running() {
			return errors.New(p.Name + " runs")
		}
		return nil
	}
}
