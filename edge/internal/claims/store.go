// Package claims owns the protocol by which requests, in any number of processes, agree which of them records
// a signal.
//
// A request claims its signals in Redis with one attempt. The first attempt that claims a signal holds its
// claim and hands the signal to Kafka. Then the attempt's status is written, once: done, released, or lost.
// Other requests find the claim, read that status, and answer duplicate, take the claim over, or wait.
//
// model/claims.py is a model of the protocol. It plays random interleavings of single Redis commands with
// crashes and stalls: `make model`, or `python3 edge/internal/claims/model/claims.py 20000`. Keep it in step
// with this package.
package claims

import (
	"context"
	"time"
)

// The times of the protocol.
const (
	// ClaimTTL is how long a claim stays: within it Redis alone tells that a resend is a duplicate.
	ClaimTTL = time.Hour
	// AttemptTTL outlives every claim that names the attempt.
	AttemptTTL = 2*ClaimTTL + 5*time.Minute
	// TakeoverAfter is the age of a claim, held by an attempt without a status, at which its holder counts as
	// dead or stalled. It is longer than the deadline of any request, so that a live holder has ended before.
	TakeoverAfter = 10 * time.Second
	// resolveTimeout bounds writing a status once the request's own deadline does not matter any more.
	resolveTimeout = 500 * time.Millisecond
	// A request that waits for another's claim inspects it again after minPause to maxPause, chosen at
	// random.
	minPause = 10 * time.Millisecond
	maxPause = 50 * time.Millisecond
)

// Key names the claim of a signal: signal.LedgerDigest.
type Key [16]byte

// Status is how an attempt ended. It is written once.
type Status string

// The statuses of an attempt.
const (
	Open     Status = ""         // not written: the attempt is under way, or its process died
	Done     Status = "done"     // written by the holder after Kafka's acknowledgement
	Released Status = "released" // written by the holder when it does not record what it claimed
	Lost     Status = "lost"     // written by another request that takes over from a dead or stalled holder
)

// Memory says whether Redis remembers all claims that it should, so what it means that it holds no claim.
type Memory uint8

// The states of Redis's memory, from best to worst.
const (
	Known        Memory = iota // Redis remembers every claim of the last ClaimTTL
	RecentlyLost               // Redis lost claims less than ClaimTTL ago: the ledger has to be asked too
	Unknown                    // there is no epoch: Redis is new or was flushed
)

// Store is what the protocol needs of Redis. The commands of one call are sent together. Each command touches
// one key and is atomic; between two of them commands of other requests may run. A call that fails may have
// done any part of its work. Results go into slices that the caller made as long as the keys; after an error
// they mean nothing.
type Store interface {
	// Claim sets each claim that is free to holder, for ClaimTTL. previous[i] is the holder that was there,
	// "" when the claim was free. It returns the worst state of the memory that the keys belong to.
	Claim(ctx context.Context, keys []Key, holder string, previous []string) (Memory, error)
	// Inspect reads the statuses of the attempts, and the ages of the claims: 0 for a claim that is gone.
	Inspect(ctx context.Context, attempts []string, statuses []Status, keys []Key, ages []time.Duration) error
	// CompareAndSwap sets each claim that is still held by from[i] to holder, for another ClaimTTL.
	// swapped[i] says whether it did.
	CompareAndSwap(ctx context.Context, keys []Key, from []string, holder string, swapped []bool) error
	// Resolve writes the status of each attempt that has none yet. previous[i] is the status that was there.
	Resolve(ctx context.Context, attempts []string, status Status, previous []Status) error
	// StartEpoch records, where there is no epoch, that the memory which the keys belong to begins now, or,
	// when it is complete, that there was nothing before to remember.
	StartEpoch(ctx context.Context, keys []Key, complete bool) error
}
