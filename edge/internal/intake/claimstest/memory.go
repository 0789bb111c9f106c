// Package claimstest owns what tests of the claim protocol stand on: Memory, a second implementation of intake.Claims;
// Conformance, the suite that it and the real one pass; Log, a stand-in for Kafka; Checker, the judge of a history. It
// is for tests only and refuses to be linked into a binary: only _test.go files import it.
package claimstest

import (
	"context"
	"sync"
	"time"

	"storefront.internal/edge/internal/intake"
)

// Memory is a Redis in memory: what several processes connect to. Its clock is time.Now, so a synctest bubble moves it.
type Memory struct {
	mu        sync.Mutex
	claims    map[intake.ClaimKey]claim
	registers map[string]intake.Register
	epoch     time.Time // zero: unmarked
}

type claim struct {
	holder string
	born   time.Time
}

// NewMemory returns a server that remembers everything since long ago.
func NewMemory() *Memory {
	m := &Memory{}
	m.Forget()
	m.epoch = time.Now().Add(-24 * time.Hour)
	return m
}

// Forget is FLUSHALL.
func (m *Memory) Forget() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.claims, m.registers, m.epoch = map[intake.ClaimKey]claim{}, map[string]intake.Register{}, time.Time{}
}

// Age makes a claim older, and reports whether there is one.
func (m *Memory) Age(key intake.ClaimKey, by time.Duration) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	c, ok := m.claim(key)
	if ok {
		c.born = c.born.Add(-by)
		m.claims[key] = c
	}
	return ok
}

// AgeEpoch lets time pass for the mark of the server.
func (m *Memory) AgeEpoch(by time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.epoch = m.epoch.Add(-by)
}

func (m *Memory) claim(key intake.ClaimKey) (claim, bool) {
	c, ok := m.claims[key]
	if ok && time.Since(c.born) >= intake.ClaimLife {
		delete(m.claims, key)
		return claim{}, false
	}
	return c, ok
}

// Connect returns a process's connection. turn, when there is one, is called before every single command, and may
// delay it, fail the call, or never return. Commands of other connections may run in between.
func (m *Memory) Connect(turn func(ctx context.Context) error) *Connection {
	if turn == nil {
		turn = func(context.Context) error { return nil }
	}
	return &Connection{memory: m, turn: turn}
}

// Connection implements intake.Claims.
type Connection struct {
	memory *Memory
	turn   func(ctx context.Context) error
}

var _ intake.Claims = (*Connection)(nil)

// each runs one command after the other, each when its turn comes.
func (c *Connection) each(ctx context.Context, n int, command func(i int)) error {
	for i := range n {
		if err := c.turn(ctx); err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		c.memory.mu.Lock()
		command(i)
		c.memory.mu.Unlock()
	}
	return c.turn(ctx) // the answer may be lost as well
}

// Take implements intake.Claims.
func (c *Connection) Take(ctx context.Context, keys []intake.ClaimKey, holder string, previous []string) (intake.Epoch, error) {
	var epoch intake.Epoch
	err := c.each(ctx, len(keys)+1, func(i int) {
		if i == len(keys) {
			epoch = c.memory.temperature()
			return
		}
		old, ok := c.memory.claim(keys[i])
		if previous[i] = old.holder; !ok {
			c.memory.claims[keys[i]] = claim{holder: holder, born: time.Now()}
		}
	})
	return epoch, err
}

func (m *Memory) temperature() intake.Epoch {
	switch {
	case m.epoch.IsZero():
		return intake.Unmarked
	case time.Since(m.epoch) < intake.ClaimLife:
		return intake.Cold
	default:
		return intake.Warm
	}
}

// Look implements intake.Claims.
func (c *Connection) Look(ctx context.Context, attempts []string, registers []intake.Register, keys []intake.ClaimKey, ages []time.Duration) error {
	if err := c.each(ctx, len(attempts), func(i int) { registers[i] = c.memory.registers[attempts[i]] }); err != nil {
		return err
	}
	return c.each(ctx, len(keys), func(i int) {
		ages[i] = 0
		if old, ok := c.memory.claim(keys[i]); ok {
			ages[i] = time.Since(old.born)
		}
	})
}

// Seize implements intake.Claims.
func (c *Connection) Seize(ctx context.Context, keys []intake.ClaimKey, from []string, holder string, won []bool) error {
	return c.each(ctx, len(keys), func(i int) {
		old, ok := c.memory.claim(keys[i])
		won[i] = ok && old.holder == from[i]
		if won[i] {
			c.memory.claims[keys[i]] = claim{holder: holder, born: time.Now()}
		}
	})
}

// Mark implements intake.Claims.
func (c *Connection) Mark(ctx context.Context, attempts []string, state intake.Register, previous []intake.Register) error {
	return c.each(ctx, len(attempts), func(i int) {
		previous[i] = c.memory.registers[attempts[i]]
		if previous[i] == intake.Open {
			c.memory.registers[attempts[i]] = state
		}
	})
}

// MarkEpoch implements intake.Claims.
func (c *Connection) MarkEpoch(ctx context.Context, _ []intake.ClaimKey, warm bool) error {
	return c.each(ctx, 1, func(int) {
		if c.memory.epoch.IsZero() {
			c.memory.epoch = time.Now()
			if warm {
				c.memory.epoch = c.memory.epoch.Add(-intake.ClaimLife)
			}
		}
	})
}
