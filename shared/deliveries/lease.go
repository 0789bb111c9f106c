package deliveries

import (
	"errors"
	"slices"
	"time"

	"storefront.internal/shared/ident"
)

var (
	// ErrBlocked says that the engine refused this credential, and no probe is allowed now.
	ErrBlocked = errors.New("the engine refused this credential")
	// ErrFenced says that the lease expired and another worker took the lane. Nothing was changed.
	ErrFenced = errors.New("the lane was leased anew")
)

// Credential is the SHA-256 of a bearer token.
type Credential [32]byte

// TakeQuery says what a worker may take.
type TakeQuery struct {
	RelayID    string
	Credential Credential
	Kinds      []Kind
	// Limit and MaxBytes bound the entries of one lease; one entry is given whatever its size.
	Limit    int
	MaxBytes int
	// Lease is how long the lane stays the worker's, by PostgreSQL's clock.
	Lease time.Duration
	// DecisionWait is how long an interaction may wait for its Decision's row.
	DecisionWait time.Duration
	// InOrderOnly passes over what must be retried alone.
	InOrderOnly bool
}

// Lease is a lane with the deliveries that its holder may send, and nobody else.
type Lease struct {
	Kind         Kind
	ConnectionID ident.ConnectionID
	Lane         int16
	Fence        int64
	// TakenAt is when the lease began, by PostgreSQL's clock.
	TakenAt time.Time
	// Alone: each entry goes in a request of its own.
	Alone bool
	// Probe: the credential is refused, and this lease's first request tries it again.
	Probe   bool
	Entries []Leased
	// whole: of what waited in the lane when it was leased, all that comes before the last entry is in Entries.
	whole bool
}

// after is the place in the lane where what is left of it begins, when those are gone: 0 if that is not known.
func (l *Lease) after(gone []int64) int64 {
	if !l.whole {
		return 0
	}
	for i := range l.Entries {
		if !slices.Contains(gone, l.Entries[i].Seq) {
			return l.Entries[i].Seq
		}
	}
	return l.Entries[len(l.Entries)-1].Seq + 1
}

// Leased is one delivery under a lease. Its Body never differs from what an earlier lease gave.
type Leased struct {
	Seq      int64
	ID       string
	Body     []byte
	Attempts int // failed ones, before this
	// Waited is the time from its being queued to the lease, by PostgreSQL's clock.
	Waited time.Duration
	// Traceparent is the entry's.
	Traceparent string
	// Unconfirmed: it was sent before, and no answer told whether it arrived.
	Unconfirmed bool
}

// Refusal is a 401: of which credential, under a lease of when, and whether it was the probe that was refused.
type Refusal struct {
	Credential Credential
	TakenAt    time.Time
	Probe      bool
}

// Fate is what became of a delivery that was sent.
type Fate uint8

const (
	// Delivered is what the engine has.
	Delivered Fate = iota + 1
	// Died is what the engine will never take.
	Died
	// Failed is what is tried again later, unless it has failed too often for too long.
	Failed
)

// Outcome is the fate of one leased delivery. What a settlement does not name goes back as it was.
type Outcome struct {
	Seq  int64
	Fate Fate
	// Reason says why it died or failed, for the list of the dead. It is cut to 256 bytes.
	Reason string
	// Unconfirmed (of Failed): it was sent, so it may have arrived.
	Unconfirmed bool
	// Aside (of Failed): from now on it is tried alone, and holds nobody back.
	Aside bool
	// RetryIn (of Failed): when it is due again, if it is or goes aside.
	RetryIn time.Duration
}

// Settlement ends a lease.
type Settlement struct {
	Outcomes []Outcome
	// Rest keeps the lane from being leased for a while.
	Rest time.Duration
	// A failed delivery dies when it has failed this often and the first time is this long ago, not counting the time
	// in which the worker did not run.
	DeadAttempts int
	DeadAfter    time.Duration
}

// Settled says what a settlement came to.
type Settled struct {
	Delivered, Died, Failed int
}
