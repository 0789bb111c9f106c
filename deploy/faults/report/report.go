// Package report owns the report of a fault run: Markdown for people and JSON for programs.
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
	"storefront.internal/deploy/faults/liveness"
	"storefront.internal/deploy/faults/nemesis"
)

// Report is what a run did and found.
type Report struct {
	Seed        uint64        `json:"seed"`
	Commit      string        `json:"commit,omitempty"`
	Begun       time.Time     `json:"begun"`
	Asked       time.Duration `json:"asked"`   // requested time of fault injection
	Started     time.Duration `json:"started"` // time until the deployment was ready and had its data
	Loaded      time.Duration `json:"loaded"`  // time of load and fault injection
	Took        time.Duration `json:"took"`
	Kinds       []string      `json:"kinds"`
	RedisFaults bool          `json:"redis_faults"`
	Brokers     int           `json:"brokers"`
	Connections int           `json:"connections"`

	Faults   int            `json:"faults"`
	Injected map[string]int `json:"injected"` // by kind
	Unhealed []string       `json:"unhealed,omitempty"`
	Exits    []Exit         `json:"exits,omitempty"`
	Replayed int            `json:"replayed"` // dead letters that the run replayed
	Unparked int            `json:"unparked"` // parked records that the run replayed
	Dropped  int            `json:"dropped"`  // unreadable records that the run dropped
	// until each edge accepted a new signal and the engine had it
	Recovery check.Percentiles `json:"recovery"`
	Crashes  []string          `json:"crashes,omitempty"`
	Findings []check.Finding   `json:"findings"`
	Figures  check.Figures     `json:"figures"`

	Reproducer string `json:"reproducer"`
	Dir        string `json:"dir,omitempty"` // of a run with findings
}

// Exit is the end of a process that was not stopped by a fault.
type Exit struct {
	Process string        `json:"process"`
	At      time.Duration `json:"at"`
	Status  string        `json:"status"`
}

// Failed reports whether the run found anything.
func (r *Report) Failed() bool { return len(r.Findings)+len(r.Crashes) > 0 }

// JSON writes the report for programs.
func (r *Report) JSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

// Markdown writes the report for people. REPORT.md is such a report.
func (r *Report) Markdown(w io.Writer) error {
	p := &printer{w: w}
	f := r.Figures
	p.print("# Report of a fault run\n")
	p.print("Written by `%s`. The packages in `deploy/faults` document the faults and the checks.\n",
		r.Reproducer)
	p.table("", "",
		[]any{"begun", fmt.Sprintf("%s, commit `%s`", r.Begun.Format(time.RFC3339), r.Commit)},
		[]any{"seed", r.Seed},
		[]any{"faults and load", fmt.Sprintf("%s (requested: %s); whole run %s", r.Loaded.Round(time.Second),
			r.Asked, r.Took.Round(time.Second))},
		[]any{"signals", fmt.Sprintf("%d, sent as %d elements", f.Signals, f.Elements)},
		[]any{"stored, at the engine", fmt.Sprintf("%d, %d", f.Stored, f.Delivered)},
		[]any{"brokers", r.Brokers},
		[]any{"connections", r.Connections},
		[]any{"faults", r.Faults},
		[]any{"findings", len(r.Findings) + len(r.Crashes)},
	)
	r.invariants(p)
	r.faults(p)
	r.goodput(p)
	r.calls(p)
	p.print("## Recovery\n")
	p.table("after the last fault was healed", "n | p50 | p90 | p99 | max",
		[]any{"until both edges accepted a new signal and the engine had it", r.Recovery},
		[]any{"until each edge accepted a batch of a client", f.Recovery},
	)
	p.print("After the last client stopped, the queue was empty within %s.",
		f.Drain.Round(100*time.Millisecond))
	if r.Failed() {
		p.print("\nThe data of the run is in %s. Repeat the run with: %s", r.Dir, r.Reproducer)
	}
	return p.err
}

func (r *Report) invariants(p *printer) {
	p.print("## Invariants\n")
	var rows [][]any
	for _, i := range check.Invariants() {
		violations := 0
		for _, f := range r.Findings {
			if f.Invariant == i.Name {
				violations += f.Count
			}
		}
		result := fmt.Sprint(violations)
		if i.Name == "S2" && r.RedisFaults {
			result = fmt.Sprintf("not checked with faults of Redis: %d ids were accepted again and "+
				"counted once", r.Figures.ExtraAccepted)
		}
		rows = append(rows, []any{i.Name, i.Description, result})
	}
	p.table("", "must hold | violations", rows...)
	for _, f := range r.Findings {
		p.print("- **%s** %s: %d, %s", f.Invariant, f.Detail, f.Count, strings.Join(f.IDs, ", "))
	}
	for _, c := range r.Crashes {
		p.print("- **crash** %s", c)
	}
	if r.Failed() {
		p.print("")
	}
}

func (r *Report) faults(p *printer) {
	p.print("## Faults by kind\n")
	var rows [][]any
	for _, k := range nemesis.Kinds() {
		if r.Injected[k.Name] > 0 {
			rows = append(rows, []any{k.Name, k.Description, r.Injected[k.Name]})
		}
	}
	p.table("kind", "what | injected", rows...)
	exits := map[string]int{}
	for _, e := range r.Exits {
		exits[e.Process]++
	}
	for _, name := range slices.Sorted(maps.Keys(exits)) {
		p.print("%s exited %d times because of a fault and was restarted.\n", name, exits[name])
	}
	for _, u := range r.Unhealed {
		p.print("A fault could not be injected or healed as planned: %s\n", u)
	}
}

func (r *Report) goodput(p *printer) {
	p.print("## What goes on while one dependency is down\n")
	p.print("Shares of the calls at a fixed rate that succeed within %s. A floor is a share of what "+
		"succeeded before. This machine stalled for %s in all.\n", liveness.Timely,
		r.Figures.Stalled.Round(time.Millisecond))
	var rows [][]any
	for _, g := range r.Figures.Goodput {
		what := "goes on"
		if g.Answered {
			what = "is answered"
		}
		rows = append(rows, []any{g.Property, g.Case, fmt.Sprintf("%s %s", g.Op, what),
			fmt.Sprintf("%s to %s", g.From, g.Until.Round(100*time.Millisecond)),
			fmt.Sprintf("%.0f %%", 100*g.Before), fmt.Sprintf("%.0f %%", 100*g.During),
			fmt.Sprintf("%.0f %%", 100*g.Floor*g.Before), g.Excused})
	}
	p.table("", "case | what | window | before | during | floor | excused", rows...)
}

func (r *Report) calls(p *printer) {
	f := r.Figures
	p.print("## Calls by outcome\n")
	p.print("`ok`: answered 2xx. `fail`: certainly without effect (4xx, connection refused). `info`: " +
		"unknown (no answer, 5xx).\n")
	var rows [][]any
	for _, op := range slices.Sorted(maps.Keys(f.Calls)) {
		rows = append(rows, []any{op, f.Calls[op]["ok"], f.Calls[op]["fail"], f.Calls[op]["info"]})
	}
	p.table("call", "ok | fail | info", rows...)
	rejected := 0
	for _, n := range f.Rejected {
		rejected += n
	}
	p.print("Signals in requests: %d accepted, %d duplicate, %d rejected. %d (%.1f %% of the "+
		"accepted) are twice in Kafka and %d reached the engine twice; "+
		"all were counted once. %d dead letters and %d parked records were replayed, %d unreadable records "+
		"were dropped.\n", f.Accepted, f.Duplicate, rejected, f.Reproduced,
		100*float64(f.Reproduced)/float64(max(f.Accepted, 1)), f.Redelivered, r.Replayed, r.Unparked,
		r.Dropped)
	for _, cause := range slices.Sorted(maps.Keys(f.StoredAfter)) {
		p.print("%d signals were stored once although no request with them was answered 202; their first "+
			"request ended with: %s.\n",
			f.StoredAfter[cause], cause)
	}
}

// printer writes lines and keeps the first error.
type printer struct {
	w   io.Writer
	err error
}

func (p *printer) print(format string, args ...any) {
	if _, err := fmt.Fprintf(p.w, format+"\n", args...); err != nil && p.err == nil {
		p.err = err
	}
}

func (p *printer) table(first, others string, rows ...[]any) {
	p.print("| %s | %s |", first, others)
	p.print("|%s", strings.Repeat("---|", 2+strings.Count(others, "|")))
	for _, row := range rows {
		var cells []string
		for _, c := range row {
			cells = append(cells, fmt.Sprint(c))
		}
		p.print("| %s |", strings.Join(cells, " | "))
	}
	p.print("")
}
