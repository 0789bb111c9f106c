// Package intaketest owns what tests of recording signals need: Log, a stand-in for Kafka; Ledger, one for
// PostgreSQL; Checker, which checks the answers of a history; Service, a service on these parts. Only tests
// import it.
package intaketest

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"storefront.internal/shared/ident"
	"storefront.internal/shared/signal"
	"storefront.internal/shared/stream"
)

// Log is a stand-in for Kafka: it keeps the signals of every stored record.
type Log struct {
	// Fault, when there is one, is called before a record is stored. Unless it returns Acknowledged the
	// record is stored only if it calls store, at once or later.
	Fault func(ctx context.Context, store func()) (stream.Outcome, error)

	mu     sync.Mutex
	stored map[ident.SignalID]int
}

// Produce implements intake.Producer.
func (l *Log) Produce(ctx context.Context, _ ident.ConnectionID, value []byte) (stream.Outcome, error) {
	r, err := signal.DecodeRecord(value)
	if err != nil {
		return stream.Refused, err
	}
	store := sync.OnceFunc(func() { l.store(r) })
	if l.Fault != nil {
		if outcome, err := l.Fault(ctx, store); outcome != stream.Acknowledged {
			return outcome, err
		}
	}
	store()
	return stream.Acknowledged, nil
}

func (l *Log) store(r *signal.Record) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stored == nil {
		l.stored = map[ident.SignalID]int{}
	}
	for i := range r.Signals {
		l.stored[r.Signals[i].ID]++
	}
}

// Count returns how often the signal is stored.
func (l *Log) Count(id ident.SignalID) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.stored[id]
}

// ErrFault is the error of injected faults.
var ErrFault = errors.New("intaketest: injected fault")

// Checker checks the answers of a history: accepted and duplicate only for signals in the log, and accepted
// once.
type Checker struct {
	Log *Log
	// Forgetful allows accepted more than once: Redis lost or refused something.
	Forgetful bool

	mu       sync.Mutex
	accepted map[string]int
	errs     []error
}

// Answer checks the results of one 202.
func (c *Checker) Answer(results []signal.Result) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.accepted == nil {
		c.accepted = map[string]int{}
	}
	for _, r := range results {
		stored := c.Log.Count(ident.SignalID(r.SignalID)) > 0
		switch {
		case r.Status == signal.Accepted && !stored:
			c.fail("accepted and not in the log: %s", r.SignalID)
		case r.Status == signal.Duplicate && !stored:
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
	c.errs = append(c.errs, fmt.Errorf(format, args...))
}

// Fail adds an error that the caller found.
func (c *Checker) Fail(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fail(format, args...)
}

// Accepted returns how often the answer for the signal was accepted.
func (c *Checker) Accepted(id string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.accepted[id]
}

// Err returns all errors.
func (c *Checker) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return errors.Join(c.errs...)
}
