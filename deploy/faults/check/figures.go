package check

import (
	"fmt"
	"math"
	"slices"
	"time"

	"storefront.internal/deploy/faults/history"
)

// Figures are the counts of a run.
type Figures struct {
	Calls         map[string]map[string]int `json:"calls"`    // by call and outcome
	Elements      int                       `json:"elements"` // signals in requests, resends included
	Signals       int                       `json:"signals"`  // distinct ids that were sent
	Accepted      int                       `json:"accepted"`
	Duplicate     int                       `json:"duplicate"`
	Rejected      map[string]int            `json:"rejected"` // by reason
	ExtraAccepted int                       `json:"extra_accepted"`
	// stored although never answered 202, by the outcome of the first request
	StoredAfter map[string]int `json:"stored_after"`
	Stored      int            `json:"stored"`
	Delivered   int            `json:"delivered"`
	Redelivered int            `json:"redelivered"` // receipts of an id after its first
	// signals in Kafka after the first of their id
	Reproduced int            `json:"reproduced"`
	Faults     map[string]int `json:"faults"`
	Recovery   Percentiles    `json:"recovery"`
	Drain      time.Duration  `json:"drain"`
	Goodput    []Goodput      `json:"goodput"`
	Stalled    time.Duration  `json:"stalled"` // of the machine
}

// Percentiles summarizes durations.
type Percentiles struct {
	Count              int
	P50, P90, P99, Max time.Duration
}

// NewPercentiles returns the percentiles by nearest rank.
func NewPercentiles(all []time.Duration) Percentiles {
	n := len(all)
	if n == 0 {
		return Percentiles{}
	}
	sorted := slices.Sorted(slices.Values(all))
	at := func(percent int) time.Duration { return sorted[max(0, (n*percent+99)/100-1)] }
	return Percentiles{n, at(50), at(90), at(99), sorted[n-1]}
}

// String returns the cells of a row of a Markdown table.
func (p Percentiles) String() string {
	round := func(d time.Duration) time.Duration { return d.Round(10 * time.Millisecond) }
	return fmt.Sprintf("%d | %s | %s | %s | %s", p.Count, round(p.P50), round(p.P90), round(p.P99),
		round(p.Max))
}

func (r *checker) figures() Figures {
	f := r.stats
	f.Calls, f.Rejected, f.Faults = map[string]map[string]int{}, map[string]int{}, map[string]int{}
	for _, c := range r.calls {
		of := f.Calls[string(c.begin.Op)]
		if of == nil {
			of = map[string]int{}
			f.Calls[string(c.begin.Op)] = of
		}
		of[string(c.kind())]++
	}
	for _, s := range r.signals {
		if len(s.attempts) > 0 {
			f.Signals++
		}
		f.Elements += len(s.attempts)
		f.Accepted += s.accepted
		f.Duplicate += s.duplicates
		for i := range s.attempts {
			if t := &s.attempts[i]; t.is("rejected") {
				f.Rejected[t.result.Reason]++
			}
		}
		f.Stored += len(s.stored)
		if s.confirmed() {
			f.Delivered++
		}
		f.Redelivered += max(0, len(s.receipts)-1)
		f.Reproduced += max(0, len(s.records)-1)
	}
	for _, x := range r.faults {
		f.Faults[x.Kind]++
	}
	for _, s := range r.stalls {
		f.Stalled += time.Duration(s.Until - s.At)
	}
	f.Recovery, f.Drain = r.recovery(), r.state.Drain
	return f
}

// recovery measures for each fault the time from its end until each edge accepted a batch that was sent after
// it. A fault is left out when another fault began before that.
func (r *checker) recovery() Percentiles {
	var all []time.Duration
	for _, f := range r.faults {
		if d, whole := r.recoveryAfter(f.Until); whole {
			all = append(all, time.Duration(d))
		}
	}
	return NewPercentiles(all)
}

// recoveryLimit is the time after a fault within which a recovery is measured.
const recoveryLimit = int64(2 * time.Minute)

func (r *checker) recoveryAfter(heal int64) (took int64, whole bool) {
	next := int64(math.MaxInt64)
	for _, f := range r.faults {
		if f.At >= heal && f.At < next {
			next = f.At
		}
		if f.At < heal && f.Until > heal {
			return 0, false // another fault is active
		}
	}
	first := map[string]int64{} // by edge: when it accepted a batch
	from, _ := slices.BinarySearchFunc(r.calls, heal, func(c *call,
		at int64) int {
		return int(max(-1, min(1, c.begin.At-at)))
	})
	for _, c := range r.calls[from:] {
		if c.begin.At > heal+recoveryLimit || c.begin.At > next {
			break
		}
		if c.begin.Op != history.Signals {
			continue
		}
		old, known := first[c.begin.Edge]
		switch {
		case c.kind() == history.OK && (!known || old == 0 || c.end.At < old):
			first[c.begin.Edge] = c.end.At
		case !known:
			first[c.begin.Edge] = 0
		}
	}
	for _, t := range first {
		if t == 0 || t > next {
			return 0, false
		}
		took = max(took, t-heal)
	}
	return took, len(first) > 0
}
