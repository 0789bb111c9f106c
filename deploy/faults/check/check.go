// Package check checks a finished fault run: from the history of what clients sent and received, and from the
// state of the idle deployment, it finds each violation of the invariants. It only considers connections of
// the history, and it shares no code with the services: the fold of cart lines is written again here. Where
// the history leaves open what happened, both outcomes are accepted.
package check

import (
	"fmt"
	"slices"
	"time"

	"storefront.internal/deploy/faults/collect"
	"storefront.internal/deploy/faults/history"
)

// Invariant is a property that must hold in each run.
type Invariant struct{ Name, Description string }

// Invariants returns all invariants in the order of a report.
func Invariants() []Invariant {
	return []Invariant{
		{"S1", "an accepted signal is stored exactly once, as it was sent"},
		{"S2", "one `accepted` per id (only without faults of Redis) and one result per position"},
		{"S3", "a `duplicate` was sent before and is stored in the end"},
		{"S4", "what was rejected or never sent is stored nowhere"},
		{"S5", "a signal that got no response or only 503 is stored at most once"},
		{"S6", "the engine has every stored signal with one body and nothing else; a rejected credential " +
			"is not used again"},
		{"S7", "cart lines are the fold of the stored signals, also at the engine"},
		{"S8", "no data of one connection or signal appears in another"},
		{"S9", "stored = delivered + pending + dead; the queue view and the metrics agree with the rows"},
		{"S10", "after the last fault the queue drains in time, and no process has grown"},
		{"S11", "the catalog equals the provider's, and an edge never answers an older revision after a " +
			"newer one"},
		{"S12", "accepted observations are archived unchanged, the greatest revision is applied, every " +
			"envelope is readable"},
		{"S13", "`unknown_decision` is only answered for Decisions of others"},
		{"H9", "PostgreSQL never has to resolve a deadlock"},
		{"H18", "a revoked key is rejected after 15 s"},
	}
}

// Options are the expectations of a run.
type Options struct {
	RedisFaults bool          // Redis lost data: a second `accepted` is counted and is not a finding
	DrainLimit  time.Duration // of S10; 0: a minute
	Start       time.Time     // wall clock at time 0 of the history
	// InFlight is the number of requests that may be in flight when the engine rejects the credential. 0: not
	// checked.
	InFlight int
	// Goroutines are the numbers of each idle process before the run. Other processes are not compared.
	Goroutines map[string]float64
	// Deadlocks is State.Deadlocks before the run.
	Deadlocks int64
}

// Finding is a violated invariant with the first twenty ids.
type Finding struct {
	Invariant string   `json:"invariant"`
	Detail    string   `json:"detail"`
	Count     int      `json:"count"`
	IDs       []string `json:"ids,omitempty"`
}

func (f Finding) String() string {
	description := ""
	for _, i := range Invariants() {
		if i.Name == f.Invariant {
			description = i.Description
		}
	}
	return fmt.Sprintf("%s (%s): %s (%d): %v", f.Invariant, description, f.Detail, f.Count, f.IDs)
}

// Run returns the findings and the figures of a run.
func Run(events []history.Event, faults []history.Fault, s *collect.State, opt Options) ([]Finding, Figures) {
	if opt.DrainLimit == 0 {
		opt.DrainLimit = time.Minute
	}
	r := &checker{faults: faults, state: s, opt: opt, byDetail: map[[2]string]int{}}
	r.index(events)
	for _, check := range []func(){
		r.checkStored, r.checkResults, r.checkDuplicates, r.checkPhantoms, r.checkUnanswered,
		r.checkDelivered, r.checkUnauthorized, r.checkCartLines, r.checkCanaries,
		r.checkQueue, r.checkIdle, r.checkCatalog, r.checkMonotonicReads, r.checkArchive, r.checkEnvelopes,
		r.checkDecisions, r.checkRevokedKeys,
	} {
		check()
	}
	order := map[string]int{}
	for i, invariant := range Invariants() {
		order[invariant.Name] = i
	}
	slices.SortStableFunc(r.findings,
		func(a, b Finding) int { return order[a.Invariant] - order[b.Invariant] })
	return r.findings, r.figures()
}

// checker checks one run.
type checker struct {
	faults []history.Fault
	state  *collect.State
	opt    Options

	calls       []*call
	signals     map[scopedID]*signalEvidence
	connections map[string]bool   // connections of the history
	minted      map[scopedID]bool // Decisions that clients received
	stats       Figures

	findings []Finding
	byDetail map[[2]string]int
}

const maxIDs = 20

// violation adds to the finding with the same invariant and detail.
func (r *checker) violation(invariant, detail, id string) {
	k := [2]string{invariant, detail}
	i, known := r.byDetail[k]
	if !known {
		i = len(r.findings)
		r.byDetail[k] = i
		r.findings = append(r.findings, Finding{Invariant: invariant, Detail: detail})
	}
	f := &r.findings[i]
	f.Count++
	if id != "" && len(f.IDs) < maxIDs {
		f.IDs = append(f.IDs, id)
	}
}
