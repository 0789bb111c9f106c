package intake

import (
	"context"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"
)

// The times of the claim protocol.
const (
	// ClaimLife is how long a claim stays: within it a resend is told "duplicate" by Redis alone.
	ClaimLife = time.Hour
	// RegisterLife outlives every claim that points at the register.
	RegisterLife = 2*ClaimLife + 5*time.Minute
	// lease is how old a claim with an empty register is when its owner counts as dead or stalled. It is longer than
	// any request's deadline, so that a live owner has ended before.
	lease = 10 * time.Second
	// A request that waits for another's claim looks again after leastPause to mostPause, drawn each time.
	leastPause = 10 * time.Millisecond
	mostPause  = 50 * time.Millisecond
)

// ClaimKey names the claim of a signal: signal.LedgerDigest.
type ClaimKey [16]byte

// Register is what is written, once, of an attempt.
type Register string

// The states of a register.
const (
	Open     Register = ""         // nothing is written: the attempt is under way, or its owner died
	Done     Register = "done"     // by the owner, after Kafka's acknowledgement
	Released Register = "released" // by the owner, when it does not record what it claimed
	Lost     Register = "lost"     // by whoever takes over from an owner that is dead or stalled
)

// Epoch says what a miss in Redis is worth.
type Epoch uint8

const (
	// Warm says that Redis remembers every claim of the last ClaimLife.
	Warm Epoch = iota
	// Cold says that Redis forgot claims less than ClaimLife ago; who meets it asks the ledger too.
	Cold
	// Unmarked says that nobody marked yet when this Redis began to remember. Whoever finds that marks it.
	Unmarked
)

// Claims is what the protocol needs of Redis. The commands of one call are sent together. Each touches one key and is
// atomic for itself; between any two of them others' commands may run, and a call that fails may have done any part of
// its work. Results go into slices that the caller made as long as the keys; after an error they say nothing.
type Claims interface {
	// Take sets each claim that is free to holder, with a life of ClaimLife. previous[i] is the holder that was there,
	// "" when the claim was free.
	Take(ctx context.Context, keys []ClaimKey, holder string, previous []string) (Epoch, error)
	// Look reads the registers of the attempts, and the ages of the claims: 0 for one that is gone.
	Look(ctx context.Context, attempts []string, registers []Register, keys []ClaimKey, ages []time.Duration) error
	// Seize gives each claim that is still held by from[i] to holder, with a new life. won[i] says whether it was.
	Seize(ctx context.Context, keys []ClaimKey, from []string, holder string, won []bool) error
	// Mark writes the registers of the attempts that have none yet. previous[i] is what was there.
	Mark(ctx context.Context, attempts []string, state Register, previous []Register) error
	// MarkEpoch marks, where nothing is marked, that the Redis of these keys remembers from now on (cold), or that it
	// has nothing to remember (warm).
	MarkEpoch(ctx context.Context, keys []ClaimKey, warm bool) error
}

// holder is the value of a claim: an attempt and the priority of its request. Priorities are drawn from 32 bits, so that
// a value has fewer than 45 characters: longer ones cost Redis a second allocation each. Of equal ones the attempts decide.
type holder struct {
	attempt  string
	priority uint64
}

func (h holder) String() string { return h.attempt + ":" + strconv.FormatUint(h.priority, 10) }

// parseHolder reads a claim's value. What is no holder's is taken for an attempt that nobody ends: the lease does.
func parseHolder(s string) holder {
	i := strings.LastIndexByte(s, ':')
	if i < 0 {
		return holder{attempt: s}
	}
	priority, err := strconv.ParseUint(s[i+1:], 10, 64)
	if err != nil {
		return holder{attempt: s}
	}
	return holder{attempt: s[:i], priority: priority}
}

// over reports whether h may wait holding while other gives back. It is a total order, so one of two always may.
func (h holder) over(other holder) bool {
	if h.priority != other.priority {
		return h.priority > other.priority
	}
	return h.attempt > other.attempt
}

// claimState is what a request knows of one of its signals.
type claimState uint8

const (
	unsettled claimState = iota
	mine                 // this attempt holds the claim: the signal is new
	known                // recorded by someone: a duplicate
)

// contender is a request on its way through the protocol.
type contender struct {
	holder
	keys   []ClaimKey
	states []claimState // per key
	epoch  Epoch        // the worst that was met
	rivals []rival      // claims of others, as the last look found them
	holds  bool         // the attempt holds claims of signals that the ledger knew

	scratchKeys     []ClaimKey
	scratchAt       []int
	scratchPrevious []string
}

// contend begins an attempt for the claims.
func (c *contender) contend(attempt string, keys []ClaimKey) {
	c.holder = holder{attempt: attempt, priority: uint64(rand.Uint32())}
	c.keys = keys
	c.states = append(c.states[:0], make([]claimState, len(keys))...)
}

// reset forgets everything but the room that it took.
func (c *contender) reset() {
	clear(c.rivals)
	clear(c.scratchPrevious)
	*c = contender{states: c.states[:0], rivals: c.rivals[:0], scratchKeys: c.scratchKeys[:0], scratchAt: c.scratchAt[:0], scratchPrevious: c.scratchPrevious[:0]}
}

func (c *contender) owns() bool {
	for _, s := range c.states {
		if s == mine {
			return true
		}
	}
	return false
}

// giveUp forgets what the attempt held; what is known stays known, since done is for ever.
func (c *contender) giveUp(next string) {
	c.attempt = next
	for i, s := range c.states {
		if s == mine {
			c.states[i] = unsettled
		}
	}
}

// remembered reports whether a claim of a signal that occurred then would still be there: then lies in the recent half
// of a claim's life, so that a shopper's clock may be wrong by the other half. A clock ahead of ours by less than
// clockNoise is not taken for one that is wrong: among those it is the shift by more than half an hour that counts,
// and such a shift is part of the published remainder either way.
func remembered(occurred, now time.Time) bool {
	const clockNoise = time.Minute
	return occurred.After(now.Add(-ClaimLife/2)) && !occurred.After(now.Add(clockNoise))
}
