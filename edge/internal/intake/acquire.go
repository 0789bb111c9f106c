package intake

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

// errPatience says that the request's deadline passed while another attempt was recording one of its signals.
var errPatience = errors.New("intake: another attempt holds a claim until the deadline")

// acquirer runs the claim protocol for requests of this process.
type acquirer struct {
	claims Claims
	nextID func() string
	marker *marker
	waited func(time.Duration)
}

// acquire settles every key of c: held by c's attempt, or known to be recorded. It ends with ctx's deadline.
//
// A claim that somebody else holds is decided by the register of that attempt. Done: known. Released or lost: taken
// over by compare-and-swap. Open and younger than the lease: it is being recorded, and of two requests that wait for
// each other the one of lower priority gives its own claims back, so that no cycle of waiting closes; the highest
// priority never gives back, so that nobody starves. Open and older: its owner is dead or stalled; lost is written
// first, and an owner that wakes up and finds it does not say accepted.
//
// After an error the attempt is over, and its claims are open to everybody: released is written in the background, as
// a call that failed may have taken them all the same.
func (a *acquirer) acquire(ctx context.Context, c *contender) error {
	start := time.Now()
	waited := false
	err := a.take(ctx, c)
	for err == nil {
		var r round
		if r, err = a.settle(ctx, c); err != nil || r == settled {
			break
		}
		if r == yield {
			if err = a.giveBack(ctx, c); err != nil {
				return err
			}
		}
		if r != again {
			waited = true
			err = pause(ctx)
		}
		if err == nil {
			err = a.take(ctx, c)
		}
	}
	if waited {
		a.waited(time.Since(start))
	}
	if err != nil {
		a.marker.later(c.attempt, Released)
	}
	return err
}

// giveBack ends the attempt and begins another one of the same priority.
func (a *acquirer) giveBack(ctx context.Context, c *contender) error {
	ended := c.attempt
	if err := a.claims.Mark(ctx, []string{ended}, Released, make([]Register, 1)); err != nil {
		a.marker.later(ended, Released)
		return err
	}
	c.giveUp(a.nextID())
	return nil
}

// round is how a look at the claims of others ended.
type round uint8

const (
	settled round = iota // nothing is open
	again                // something changed under our hands: at once
	hold                 // wait with what we hold
	yield                // give back and wait
)

// take claims what is unsettled. What was our own already is ours: a pipeline may be sent twice.
func (a *acquirer) take(ctx context.Context, c *contender) error {
	keys, at := c.unsettled()
	if len(keys) == 0 {
		return nil
	}
	c.scratchPrevious = append(c.scratchPrevious[:0], make([]string, len(keys))...)
	previous := c.scratchPrevious
	epoch, err := a.claims.Take(ctx, keys, c.String(), previous)
	if err != nil {
		return err
	}
	c.epoch = max(c.epoch, epoch)
	c.rivals = c.rivals[:0]
	for i, p := range previous {
		if h := parseHolder(p); p == "" || h.attempt == c.attempt {
			c.states[at[i]] = mine
		} else {
			c.rivals = append(c.rivals, rival{holder: h, value: p, key: keys[i], at: at[i]})
		}
	}
	return nil
}

// settle looks at the registers of the others, takes over what is free to be taken, and says how to go on.
func (a *acquirer) settle(ctx context.Context, c *contender) (round, error) {
	if len(c.rivals) == 0 {
		return settled, nil
	}
	if err := a.look(ctx, c); err != nil {
		return settled, err
	}
	if err := a.declareLost(ctx, c); err != nil {
		return settled, err
	}
	if err := a.seize(ctx, c); err != nil {
		return settled, err
	}
	return c.verdict(), nil
}

// look reads the rivals' registers and the ages of their claims. An age may be that of a later holder, which makes it
// too young and never too old.
func (a *acquirer) look(ctx context.Context, c *contender) error {
	attempts := c.attempts(func(*rival) bool { return true })
	registers := make([]Register, len(attempts))
	keys := make([]ClaimKey, len(c.rivals))
	ages := make([]time.Duration, len(c.rivals))
	for i := range c.rivals {
		keys[i] = c.rivals[i].key
	}
	if err := a.claims.Look(ctx, attempts, registers, keys, ages); err != nil {
		return err
	}
	c.note(attempts, registers)
	for i := range c.rivals {
		c.rivals[i].stale = ages[i] >= lease
	}
	return nil
}

// declareLost writes lost for the attempts that are open beyond the lease. One that ended meanwhile keeps its word.
func (a *acquirer) declareLost(ctx context.Context, c *contender) error {
	attempts := c.attempts(func(r *rival) bool { return r.register == Open && r.stale })
	if len(attempts) == 0 {
		return nil
	}
	registers := make([]Register, len(attempts))
	if err := a.claims.Mark(ctx, attempts, Lost, registers); err != nil {
		return err
	}
	for i := range registers {
		if registers[i] == Open {
			registers[i] = Lost
		}
	}
	c.note(attempts, registers)
	return nil
}

// seize takes over the claims whose attempts gave them up or lost them.
func (a *acquirer) seize(ctx context.Context, c *contender) error {
	var keys []ClaimKey
	var from []string
	var at []int
	for i := range c.rivals {
		if r := &c.rivals[i]; r.register == Released || r.register == Lost {
			keys, from, at = append(keys, r.key), append(from, r.value), append(at, i)
		}
	}
	if len(keys) == 0 {
		return nil
	}
	won := make([]bool, len(keys))
	if err := a.claims.Seize(ctx, keys, from, c.String(), won); err != nil {
		return err
	}
	for i, ok := range won {
		if ok {
			c.states[c.rivals[at[i]].at] = mine
		}
	}
	return nil
}

// pause waits a moment before the next look. The length is drawn, so that those who wait do not march in step.
func pause(ctx context.Context) error {
	t := time.NewTimer(leastPause + rand.N(mostPause-leastPause))
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return errPatience
	}
}
