// Package check owns the judgement of a fault run: the invariants S1 to S13, from the history of what clients did and saw and
// the state in which everything came to rest. Only connections of the history are judged. It is pure, and shares nothing with the code that it judges: the fold of carts
// is written apart. It refuses to guess: what the history leaves open may have gone either way.
//
//	S1  an accepted signal is stored exactly once, as it was sent
//	S2  at most one `accepted` per id (without faults of Redis), one result per position
//	S3  a `duplicate` had an earlier call, and is stored in the end
//	S4  what was refused is nowhere, and what nobody sent is nowhere
//	S5  what was only answered by 503, or not at all, is stored at most once
//	S6  the engine has every stored signal, each copy byte for byte the same, and nothing else; a refused credential is let alone
//	S7  cart lines are the fold of the stored signals, and so is what the engine was told
//	S8  no bytes of one connection or signal in another
//	S9  stored = delivered + pending + dead; the view and the metrics say what the rows say
//	S10 after the heal everything drains in time, and no process has grown
//	S11 the catalog is the provider's truth, and one edge never answers an older revision after a newer one
//	S12 accepted observations are archived byte for byte, the greatest revision is applied, every envelope can be read
//	S13 `unknown_decision` only for what is not ours
//	H9  PostgreSQL never has to end a deadlock
//	H18 a revoked key opens nothing after 15 s
package check

import (
	"fmt"
	"slices"
	"time"

	"storefront.internal/deploy/faults/collect"
	"storefront.internal/deploy/faults/history"
)

// Options says what a run allows.
type Options struct {
	RedisFaults bool          // Redis forgot or stood still: a second `accepted` is counted, and no finding
	DrainLimit  time.Duration // of S10; 60 s when zero
	Start       time.Time     // the wall clock's time at the run's zero
	// InFlight is how many requests may be on their way to the engine when it refuses a credential; 0 leaves that unchecked.
	InFlight int
	// Goroutines are those of each process at rest before the run; a process that is not named is not compared.
	Goroutines map[string]float64
	// Deadlocks is what State.Deadlocks was before the run.
	Deadlocks int64
}

// Finding is a broken invariant. IDs are the first twenty of Count.
type Finding struct {
	Invariant string   `json:"invariant"`
	Detail    string   `json:"detail"`
	Count     int      `json:"count"`
	IDs       []string `json:"ids,omitempty"`
}

// String is the finding in one line.
func (f Finding) String() string {
	return fmt.Sprintf("%s: %s (%d): %v", f.Invariant, f.Detail, f.Count, f.IDs)
}

// Run judges a run.
func Run(events []history.Event, faults []history.Fault, s *collect.State, opt Options) ([]Finding, Figures) {
	if opt.DrainLimit == 0 {
		opt.DrainLimit = time.Minute
	}
	r := &run{faults: faults, state: s, opt: opt, at: map[[2]string]int{}}
	r.index(events)
	for _, check := range []func(){
		r.stored, r.answers, r.duplicates, r.phantoms, r.unanswered, r.delivered, r.refusals, r.carts, r.canaries,
		r.conserved, r.rest, r.truth, r.monotone, r.archive, r.envelopes, r.decisions, r.revoked,
	} {
		check()
	}
	slices.SortStableFunc(r.findings, func(a, b Finding) int { return order(a.Invariant) - order(b.Invariant) })
	return r.findings, r.figures()
}

// order sorts S2 before S10.
func order(invariant string) int {
	var n int
	if _, err := fmt.Sscanf(invariant, "S%d", &n); err != nil {
		return 99
	}
	return n
}

// run is one judgement.
type run struct {
	faults []history.Fault
	state  *collect.State
	opt    Options

	calls    []*call
	subjects map[key]*subject
	ours     map[string]bool // connections of the history
	minted   map[key]bool    // Decisions that clients were served
	measured Figures

	findings []Finding
	at       map[[2]string]int
}

const shown = 20

// found notes a broken invariant; those that read alike are one finding.
func (r *run) found(invariant, detail, id string) {
	k := [2]string{invariant, detail}
	i, known := r.at[k]
	if !known {
		i = len(r.findings)
		r.at[k] = i
		r.findings = append(r.findings, Finding{Invariant: invariant, Detail: detail})
	}
	f := &r.findings[i]
	f.Count++
	if id != "" && len(f.IDs) < shown {
		f.IDs = append(f.IDs, id)
	}
}
