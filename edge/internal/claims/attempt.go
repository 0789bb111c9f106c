package claims

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// holder is the value of a claim: an attempt, and the priority of its request. A priority has 32 bits, as a
// value of 45 characters or more would cost Redis a second allocation.
type holder struct {
	text     string // the value
	attempt  string
	priority uint32
}

// parseHolder reads a claim's value. Anything else is taken for an attempt without a status, so that the
// claim can be taken over after TakeoverAfter.
func parseHolder(s string) holder {
	i := strings.LastIndexByte(s, ':')
	if i < 0 {
		return holder{text: s, attempt: s}
	}
	priority, err := strconv.ParseUint(s[i+1:], 10, 32)
	if err != nil {
		return holder{text: s, attempt: s}
	}
	return holder{text: s, attempt: s[:i], priority: uint32(priority)}
}

// outranks reports whether h may keep its claims while other has to release its own. It is a total order.
func (h holder) outranks(other holder) bool {
	if h.priority != other.priority {
		return h.priority > other.priority
	}
	return h.attempt > other.attempt
}

// KeyState is what a request knows of one of its keys.
type KeyState uint8

// The states of a key.
const (
	Pending  KeyState = iota
	Held              // by this attempt: the signal is new
	Recorded          // by an earlier attempt: the signal is a duplicate
)

// Attempt is a request on its way through the protocol. The zero value is ready for Claimer.Start. It can be
// used again after Reset.
type Attempt struct {
	holder
	started time.Time
	keys    []Key
	states  []KeyState  // by key
	memory  Memory      // the worst that was met
	others  []heldClaim // claims of other attempts, as they were inspected last
	holds   bool        // claims of signals that the ledger has

	scratchKeys     []Key
	scratchIndexes  []int
	scratchPrevious []string
	scratchAttempt  [1]string
	scratchStatus   [1]Status
}

// heldClaim is a claim that another attempt holds.
type heldClaim struct {
	holder
	key     Key
	index   int // of the key
	status  Status
	expired bool // the claim is older than TakeoverAfter
}

// Reset forgets everything but the memory that it allocated.
func (a *Attempt) Reset() {
	clear(a.others)
	clear(a.scratchPrevious)
	*a = Attempt{states: a.states[:0], others: a.others[:0], scratchKeys: a.scratchKeys[:0],
		scratchIndexes: a.scratchIndexes[:0], scratchPrevious: a.scratchPrevious[:0]}
}

// restart begins another attempt, which holds nothing. What is recorded stays recorded.
func (a *Attempt) restart(h holder) {
	a.holder = h
	for i, state := range a.states {
		if state == Held {
			a.states[i] = Pending
		}
	}
}

// Keys returns the keys.
func (a *Attempt) Keys() []Key { return a.keys }

// State returns the state of the i-th key.
func (a *Attempt) State(i int) KeyState { return a.states[i] }

// Memory returns the worst state of Redis's memory that the attempt met.
func (a *Attempt) Memory() Memory { return a.memory }

// HasNew reports whether the attempt holds a claim of a signal that is new.
func (a *Attempt) HasNew() bool { return slices.Contains(a.states, Held) }

// HoldsClaims reports whether the attempt holds a claim at all, so has to be confirmed.
func (a *Attempt) HoldsClaims() bool { return a.holds || a.HasNew() }

// SetRecorded says that the signal of the i-th key, which the attempt holds, is in the ledger. The attempt
// keeps the claim: done is true of the signal too.
func (a *Attempt) SetRecorded(i int) {
	a.states[i] = Recorded
	a.holds = true
}

// pending returns the keys that are neither held nor recorded, and their indexes.
func (a *Attempt) pending() (keys []Key, indexes []int) {
	keys, indexes = a.scratchKeys[:0], a.scratchIndexes[:0]
	for i, state := range a.states {
		if state == Pending {
			keys, indexes = append(keys, a.keys[i]), append(indexes, i)
		}
	}
	a.scratchKeys, a.scratchIndexes = keys, indexes
	return keys, indexes
}

// otherAttempts returns the distinct attempts of the other claims that match.
func (a *Attempt) otherAttempts(match func(*heldClaim) bool) []string {
	var set []string
	for i := range a.others {
		if o := &a.others[i]; match(o) && !slices.Contains(set, o.attempt) {
			set = append(set, o.attempt)
		}
	}
	return set
}

// setStatuses notes what was read of the attempts.
func (a *Attempt) setStatuses(attempts []string, statuses []Status) {
	for i := range a.others {
		o := &a.others[i]
		if at := slices.Index(attempts, o.attempt); at >= 0 {
			o.status = statuses[at]
		}
	}
}

// action is what to do about the claims of others.
type action uint8

// The actions; the greatest that a claim asks for wins.
const (
	finish    action = iota // nothing is pending
	retry                   // another attempt took over a claim first: claim again at once
	wait                    // claim again after a pause, and keep the claims held so far
	yieldWait               // claim again after a pause, and release the claims held so far before it
)

// next notes what is recorded, and returns what to do about the rest.
func (a *Attempt) next() action {
	next := finish
	for i := range a.others {
		o := &a.others[i]
		switch {
		case a.states[o.index] == Held:
		case o.status == Done:
			a.states[o.index] = Recorded
		case o.status != Open:
			next = max(next, retry)
		case o.outranks(a.holder) && a.HasNew():
			next = max(next, yieldWait)
		default:
			next = max(next, wait)
		}
	}
	return next
}
