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
		{"S14", "an erased visitor is stored nowhere, and a redaction redacts its buyer and nobody else"},
		{"L1", "while PostgreSQL is down, recording goes on as long as Redis remembers its claims, and so " +
			"do reads of items and recommendations"},
		{"L2", "while Redis is down, reads of items, recommendations and the catalog go on, and recording " +
			"is refused in time"},
		{"L3", "while one broker of several is down, recording loses its share for some seconds; reads of " +
			"items go on without any"},
		{"L4", "while the engine is down, recording, reads and the catalog go on, and recommendations fall " +
			"back"},
		{"L5", "while a provider is down, everything that does not fetch from it goes on, webhooks included"},
		{"L6", "while the relays, control or one edge are down, the edges or the other edge go on"},
		{"L7", "soon after a dependency is back, each edge accepts signals and the engine gets them"},
		{"L8", "nothing is stuck for ever: dead letters, quarantined observations, parked records, " +
			"erasures, redactions and jobs are all completed in the end"},
		{"L9", "clients that connect, announce bodies and leave cost the others nothing"},
		{"L10", "an engine that refuses everything for a while dead-letters few deliveries"},
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
	// Partial says that the deployment has other work than that of the history's connections.
	Partial bool
	// Replayed is the number of dead letters that were replayed.
	Replayed int
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
func Run(h history.History, s *collect.State, opt Options) ([]Finding, Figures) {
	if opt.DrainLimit == 0 {
		opt.DrainLimit = time.Minute
	}
	r := &checker{faults: h.Faults, stalls: h.Stalls, state: s, opt: opt, byDetail: map[[2]string]int{}}
	r.index(h.Events)
	for _, check := range []func(){
		r.checkStored, r.checkResults, r.checkDuplicates, r.checkPhantoms, r.checkUnanswered,
		r.checkDelivered, r.checkUnauthorized, r.checkCartLines, r.checkCanaries,
		r.checkQueue, r.checkIdle, r.checkCatalog, r.checkMonotonicReads, r.checkArchive, r.checkEnvelopes,
		r.checkDecisions, r.checkRevokedKeys, r.checkErasures, r.checkRedactions, r.checkGoodput,
		r.checkRecovery, r.checkStuck, r.checkRefusals,
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
	stalls []history.Stall
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
