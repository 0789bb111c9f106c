package claimstest

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"storefront.internal/shared/ident"
	"storefront.internal/shared/signal"
	"storefront.internal/shared/stream"
)

// Log is a stand-in for Kafka: it keeps the signals of every record that landed.
type Log struct {
	// Fault, when there is one, decides before a record lands; land appends it, now or later.
	Fault func(ctx context.Context, land func()) (stream.Outcome, error)

	mu     sync.Mutex
	stored map[ident.SignalID]int
}

// Produce implements intake.Producer.
func (l *Log) Produce(ctx context.Context, value []byte) (stream.Outcome, error) {
	r, err := signal.DecodeRecord(value)
	if err != nil {
		return stream.Refused, err
	}
	land := sync.OnceFunc(func() { l.land(r) })
	if l.Fault != nil {
		if outcome, err := l.Fault(ctx, land); outcome != stream.Acknowledged {
			return outcome, err
		}
	}
	land()
	return stream.Acknowledged, nil
}

func (l *Log) land(r *signal.Record) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stored == nil {
		l.stored = map[ident.SignalID]int{}
	}
	for i := range r.Signals {
		l.stored[r.Signals[i].Signal.ID]++
	}
}

// Holds says how often the signal landed.
func (l *Log) Holds(id ident.SignalID) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.stored[id]
}

// ErrFault is the cause of injected faults.
var ErrFault = errors.New("claimstest: injected fault")

// Checker judges the answers of a history: accepted and duplicate only of what is in the log, and accepted once.
type Checker struct {
	Log *Log
	// Forgetful allows a second accepted: Redis lost or refused something.
	Forgetful bool

	mu       sync.Mutex
	accepted map[string]int
	faults   []error
}

// Answer takes the results of one 202.
func (c *Checker) Answer(results []signal.Result) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.accepted == nil {
		c.accepted = map[string]int{}
	}
	for _, r := range results {
		landed := c.Log.Holds(ident.SignalID(r.SignalID)) > 0
		switch {
		case r.Status == signal.Accepted && !landed:
			c.fail("accepted and not in the log: %s", r.SignalID)
		case r.Status == signal.Duplicate && !landed:
			c.fail("false duplicate: %s", r.SignalID)
		case r.Status == signal.Accepted:
			c.accepted[r.SignalID]++
			if c.accepted[r.SignalID] > 1 && !c.Forgetful {
				c.fail("accepted twice: %s", r.SignalID)
			}
		case r.Status != signal.Duplicate:
			c.fail("%s: %s %s", r.SignalID, r.Status, r.Reason)
		}
	}
}

func (c *Checker) fail(format string, args ...any) {
	c.faults = append(c.faults, fmt.Errorf(format, args...))
}

// Fail notes a fault that the caller found.
func (c *Checker) Fail(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fail(format, args...)
}

// Accepted says how often the signal was answered as accepted.
func (c *Checker) Accepted(id string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.accepted[id]
}

// Err returns everything that was wrong.
func (c *Checker) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return errors.Join(c.faults...)
}
