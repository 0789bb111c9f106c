package deliveries

import (
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"storefront.internal/shared/ident"
)

// ErrBlocked says that the engine refused this credential and that no probe is allowed now.
var ErrBlocked = errors.New("the engine refused this credential")

// Credential is the SHA-256 of a bearer token.
type Credential [32]byte

// LeaseQuery says what a worker may lease.
type LeaseQuery struct {
	RelayID    string
	Credential Credential
	Kinds      []Kind
	// Lanes is how many lanes may be leased together; 0 means one.
	Lanes int
	// Limit and MaxBytes bound the entries of all of them; one entry is given whatever its size.
	Limit    int
	MaxBytes int
	// TTL is how long the worker keeps the lane, by PostgreSQL's clock.
	TTL time.Duration
	// DecisionWait is how long an interaction may wait for the row of its Decision.
	DecisionWait time.Duration
	// SkipRetryLanes leaves out the retry lanes.
	SkipRetryLanes bool
}

// Lease is a lane with the deliveries that only the holder may send.
type Lease struct {
	Kind         Kind
	ConnectionID ident.ConnectionID
	Lane         int16
	Fence        int64
	// LeasedAt is the beginning of the lease, by PostgreSQL's clock.
	LeasedAt time.Time
	// Isolated: the lane is a retry lane; each entry goes in a request of its own.
	Isolated bool
	// Probe: the credential is refused, and the first request of this lease tries it again.
	Probe   bool
	Entries []LeasedEntry
	// contiguous: Entries has all that waited in the lane before its last entry.
	contiguous bool
}

// fewEntries is how many deleted entries are so few that a look from the start of the lane is as cheap as a
// look behind them.
const fewEntries = 8

// resumeSeq is where the rest of the lane begins once the entries in gone have left it: 0 when that is not
// known or not worth a look of its own.
func (l *Lease) resumeSeq(gone []int64) int64 {
	if !l.contiguous || len(l.Entries) < fewEntries {
		return 0
	}
	for i := range l.Entries {
		if !slices.Contains(gone, l.Entries[i].Seq) {
			return l.Entries[i].Seq
		}
	}
	return l.Entries[len(l.Entries)-1].Seq + 1
}

// LeasedEntry is one delivery under a lease. Its Body is the same in every lease, unless it is redacted.
type LeasedEntry struct {
	Seq      int64
	ID       string
	Body     []byte
	Attempts int // failed ones so far
	// Waited is the time from queueing to the lease, by PostgreSQL's clock.
	Waited      time.Duration
	Traceparent string
	// Unconfirmed: it was sent before, and no answer said whether it arrived.
	Unconfirmed bool
	tid         pgtype.TID // of its row, unless that was redacted since
}

// Refusal is a 401: of which credential, under a lease from when, and whether the refused request was the
// probe.
type Refusal struct {
	Credential Credential
	LeasedAt   time.Time
	Probe      bool
}

// OutcomeStatus is what became of a delivery that was sent.
type OutcomeStatus uint8

const (
	// Delivered means that the engine has it.
	Delivered OutcomeStatus = iota + 1
	// DeadLettered means that the engine will never accept it.
	DeadLettered
	// Failed means that it is tried again later, unless it has failed too often for too long.
	Failed
)

// Outcome is what became of one leased delivery. An entry without an Outcome returns to the queue unchanged.
type Outcome struct {
	Seq    int64
	Status OutcomeStatus
	// Reason says why it was dead-lettered or failed, for the list of dead letters. It is cut to 240
	// characters.
	Reason string
	// Unconfirmed (of Failed): it was sent, so it may have arrived.
	Unconfirmed bool
	// Isolate (of Failed): it moves to the retry lane, where it does not hold up others.
	Isolate bool
	// RetryIn (of Failed): when it is due again, if it is in the retry lane or moves there.
	RetryIn time.Duration
}

// LaneCompletion ends the lease of one lane.
type LaneCompletion struct {
	Lease    *Lease
	Outcomes []Outcome
	// Delay is how long the lane cannot be leased.
	Delay time.Duration
}

// Completion ends leases.
type Completion struct {
	Lanes []LaneCompletion
	// A failed delivery is dead-lettered when it has failed this often and the first failure is this long
	// ago. The time in which the worker was not running does not count.
	DeadAttempts int
	DeadAfter    time.Duration
}

// Completed says what a Completion did.
type Completed struct {
	Delivered, DeadLettered, Failed int
	// Lost are the leases that expired and whose lanes other workers have leased, or that were completed
	// before. Nothing of them was changed, and they are not counted.
	Lost []*Lease
}
