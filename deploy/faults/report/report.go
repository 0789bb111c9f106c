// Package report is what a fault run says in the end: for people in text and Markdown, for programs in JSON. It owns the form; the
// figures come from the runner and the checker.
package report

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"storefront.internal/deploy/faults/check"
)

// Report is a run's.
type Report struct {
	Seed        uint64        `json:"seed"`
	Commit      string        `json:"commit,omitempty"`
	Begun       time.Time     `json:"begun"`
	Asked       time.Duration `json:"asked"`   // how long the nemesis was to play
	Started     time.Duration `json:"started"` // until everything was up and loaded
	Loaded      time.Duration `json:"loaded"`  // how long clients and nemesis were at work
	Took        time.Duration `json:"took"`
	Kinds       []string      `json:"kinds"`
	RedisFaults bool          `json:"redis_faults"`

	Faults   int             `json:"faults"`
	Injected map[string]int  `json:"injected"` // by kind
	Unhealed []string        `json:"unhealed,omitempty"`
	Falls    []Fall          `json:"falls,omitempty"`
	Replayed int             `json:"replayed"` // deliveries that died of made-up answers
	Recovery Percentiles     `json:"recovery"` // until a fresh signal was accepted by every edge and had reached the engine
	Crashes  []string        `json:"crashes,omitempty"`
	Findings []check.Finding `json:"findings"`
	Figures  check.Figures   `json:"figures"`

	Reproducer string `json:"reproducer"`
	Dir        string `json:"dir,omitempty"` // of a run with findings
}

// Fall is a process that ended by itself.
type Fall struct {
	Process string        `json:"process"`
	At      time.Duration `json:"at"`
	Ending  string        `json:"ending"`
}

// Percentiles of durations.
type Percentiles struct {
	Count              int
	P50, P90, P99, Max time.Duration
}

// Spread makes percentiles of sorted durations, by nearest rank.
func Spread(sorted []time.Duration) Percentiles {
	n := len(sorted)
	if n == 0 {
		return Percentiles{}
	}
	at := func(percent int) time.Duration { return sorted[max(0, (n*percent+99)/100-1)] }
	return Percentiles{n, at(50), at(90), at(99), sorted[n-1]}
}

// Failed tells whether the run found anything.
func (r *Report) Failed() bool { return len(r.Findings)+len(r.Crashes) > 0 }

// JSON writes the report for programs.
func (r *Report) JSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

// Invariants are those of the checker with what each allows, in their order.
func Invariants() [][2]string {
	return [][2]string{
		{"S1", "accepted signals that are not stored exactly once, as they were sent"},
		{"S2", "a second `accepted` of an id (runs without faults of Redis)"},
		{"S3", "a `duplicate` that was not there, or is not stored in the end"},
		{"S4", "what was refused, or never sent, and is somewhere all the same"},
		{"S5", "signals without an answer that are stored twice"},
		{"S6", "stored signals that the engine lacks, got changed, or never should have got"},
		{"S7", "cart lines that are not the fold of the stored signals"},
		{"S8", "bytes of one connection or signal in another"},
		{"S9", "stored = delivered + pending + dead, the view, the metrics"},
		{"S10", "not at rest after the heal, or grown"},
		{"S11", "items that are not the provider's truth, or a revision that fell"},
		{"S12", "observations that are not archived, applied, or readable"},
		{"S13", "`unknown_decision` for a Decision of ours"},
		{"H18", "a revoked key that opened something after 15 s"},
	}
}

// Text writes the report for a terminal.
func (r *Report) Text(w io.Writer) {
	f := r.Figures
	fmt.Fprintf(w, "\nfault run, seed %d: %s of faults, %s in all\n", r.Seed, r.Loaded.Round(time.Second), r.Took.Round(time.Second))
	fmt.Fprintf(w, "signals    %d sent as %d elements; stored %d, at the engine %d\n", f.Signals, f.Elements, f.Stored, f.Delivered)
	fmt.Fprintf(w, "answers    accepted %d (%d a second time), duplicate %d, rejected %v\n", f.Accepted, f.ExtraAccepted, f.Duplicate, total(f.Rejected))
	fmt.Fprintf(w, "unanswered stored all the same: %v\n", f.StoredAfter)
	fmt.Fprintf(w, "absorbed   %d elements twice in Kafka, %d twice at the engine, %d replayed from the dead\n", f.Reproduced, f.Redelivered, r.Replayed)
	fmt.Fprintf(w, "faults     %d: %s\n", r.Faults, kinds(r.Injected))
	fmt.Fprintf(w, "calls      %s\n", calls(f.Calls))
	fmt.Fprintf(w, "recovery   until a fresh signal was at the engine: %s\n", r.Recovery)
	fmt.Fprintf(w, "           until every edge took a batch: n=%d p50 %.1fs p90 %.1fs p99 %.1fs max %.1fs\n", f.Recovery.Count, f.Recovery.P50, f.Recovery.P90, f.Recovery.P99, f.Recovery.Max)
	fmt.Fprintf(w, "drained    %s after the last client\n", f.Drain.Round(100*time.Millisecond))
	for _, x := range r.Falls {
		fmt.Fprintf(w, "fell       %s at %s: %s\n", x.Process, x.At.Round(time.Second), x.Ending)
	}
	for _, x := range r.Unhealed {
		fmt.Fprintf(w, "not as planned: %s\n", x)
	}
	for _, x := range r.Crashes {
		fmt.Fprintf(w, "CRASH      %s\n", x)
	}
	for _, x := range r.Findings {
		fmt.Fprintf(w, "FINDING    %s\n", x)
	}
	if !r.Failed() {
		fmt.Fprintf(w, "S1–S13     clean\n")
		return
	}
	fmt.Fprintf(w, "its folder: %s\nonce more:  %s\n", r.Dir, r.Reproducer)
}

func (p Percentiles) String() string {
	round := func(d time.Duration) time.Duration { return d.Round(10 * time.Millisecond) }
	return fmt.Sprintf("n=%d p50 %s p90 %s p99 %s max %s", p.Count, round(p.P50), round(p.P90), round(p.P99), round(p.Max))
}

func total(by map[string]int) int {
	n := 0
	for _, c := range by {
		n += c
	}
	return n
}

// kinds writes counts by kind in the order of the kinds' numbers.
func kinds(by map[string]int) string {
	var all []string
	for _, k := range slices.SortedFunc(maps.Keys(by), func(a, b string) int { return number(a) - number(b) }) {
		all = append(all, fmt.Sprintf("%s %d", k, by[k]))
	}
	return strings.Join(all, ", ")
}

func number(kind string) int {
	var n int
	if _, err := fmt.Sscanf(kind, "N%d", &n); err != nil {
		return 99
	}
	return n
}

func calls(by map[string]map[string]int) string {
	var all []string
	for _, op := range slices.Sorted(maps.Keys(by)) {
		var ends []string
		for _, kind := range slices.Sorted(maps.Keys(by[op])) {
			ends = append(ends, fmt.Sprintf("%s %d", kind, by[op][kind]))
		}
		all = append(all, op+" ("+strings.Join(ends, ", ")+")")
	}
	return strings.Join(all, ", ")
}
