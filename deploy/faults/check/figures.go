package check

import (
	"math"
	"slices"
	"time"

	"storefront.internal/deploy/faults/history"
)

// Figures are what a run came to.
type Figures struct {
	Calls         map[string]map[string]int `json:"calls"`    // by operation, by kind of end
	Elements      int                       `json:"elements"` // of operation 1, resends included
	Signals       int                       `json:"signals"`  // ids that were sent
	Accepted      int                       `json:"accepted"`
	Duplicate     int                       `json:"duplicate"`
	Rejected      map[string]int            `json:"rejected"` // by reason
	ExtraAccepted int                       `json:"extra_accepted"`
	StoredAfter   map[string]int            `json:"stored_after"` // never answered by a 202, and stored: by how the first try ended
	Stored        int                       `json:"stored"`
	Delivered     int                       `json:"delivered"`
	Redelivered   int                       `json:"redelivered"` // receipts beyond the first of an id
	Reproduced    int                       `json:"reproduced"`  // elements in Kafka beyond the first of an id
	Faults        map[string]int            `json:"faults"`
	Recovery      Percentiles               `json:"recovery"`
	Drain         time.Duration             `json:"drain"`
}

// Percentiles are of durations in seconds.
type Percentiles struct {
	Count              int `json:"count"`
	P50, P90, P99, Max float64
}

func (r *run) figures() Figures {
	f := r.measured
	f.Calls, f.Rejected, f.Faults = map[string]map[string]int{}, map[string]int{}, map[string]int{}
	for _, c := range r.calls {
		of := f.Calls[string(c.begin.Op)]
		if of == nil {
			of = map[string]int{}
			f.Calls[string(c.begin.Op)] = of
		}
		of[string(c.kind())]++
	}
	for _, s := range r.subjects {
		if len(s.tries) > 0 {
			f.Signals++
		}
		f.Elements += len(s.tries)
		f.Accepted += s.accepted
		f.Duplicate += s.dups
		for i := range s.tries {
			if t := &s.tries[i]; t.is("rejected") {
				f.Rejected[t.result.Reason]++
			}
		}
		f.Stored += len(s.stored)
		if s.told() {
			f.Delivered++
		}
		f.Redelivered += max(0, len(s.receipts)-1)
		f.Reproduced += max(0, len(s.records)-1)
	}
	for _, x := range r.faults {
		f.Faults[x.Kind]++
	}
	f.Recovery, f.Drain = r.recovery(), r.state.Drain
	return f
}

// recovery measures, for each fault, from its heal until every edge that clients went on to call has taken a batch that was sent
// after the heal. A fault before whose recovery another one began tells nothing.
func (r *run) recovery() Percentiles {
	var all []float64
	for _, f := range r.faults {
		if d, whole := r.recovered(f.Until); whole {
			all = append(all, time.Duration(d).Seconds())
		}
	}
	slices.Sort(all)
	p := Percentiles{Count: len(all)}
	if len(all) > 0 {
		p.P50, p.P90, p.P99, p.Max = at(all, .5), at(all, .9), at(all, .99), all[len(all)-1]
	}
	return p
}

// at is the nearest-rank percentile.
func at(sorted []float64, q float64) float64 {
	return sorted[max(0, int(math.Ceil(q*float64(len(sorted))))-1)]
}

// within is how long after a heal a recovery is looked for.
const within = int64(2 * time.Minute)

func (r *run) recovered(heal int64) (took int64, whole bool) {
	next := int64(math.MaxInt64)
	for _, f := range r.faults {
		if f.At >= heal && f.At < next {
			next = f.At
		}
		if f.At < heal && f.Until > heal {
			return 0, false // another one is still on
		}
	}
	first := map[string]int64{} // by edge, when it took a batch
	from, _ := slices.BinarySearchFunc(r.calls, heal, func(c *call, at int64) int { return int(max(-1, min(1, c.begin.At-at))) })
	for _, c := range r.calls[from:] {
		if c.begin.At > heal+within || c.begin.At > next {
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
