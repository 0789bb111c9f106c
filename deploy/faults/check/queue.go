package check

import (
	"fmt"
	"strings"
)

// conserved is S9.
func (r *run) conserved() {
	stored := map[string]int{}
	for _, s := range r.state.Signals {
		stored[s.Connection]++
	}
	for connection, n := range r.state.Ledger {
		if r.ours[connection] && n != stored[connection] {
			r.found("S9", "the ledger holds another number of signals than are stored", fmt.Sprintf("%s: %d, stored %d", connection, n, stored[connection]))
		}
	}
	for k, s := range r.subjects {
		switch {
		case s.pending+s.dead > 0 && len(s.stored) == 0:
			r.found("S9", "waiting or dead, and not stored", k.String())
		case s.pending+s.dead > 1:
			r.found("S9", "in the queue more than once", k.String())
		}
	}
	for _, q := range r.state.Queue {
		if !r.ours[q.Connection] {
			continue
		}
		if q.Counted != q.Pending || q.CountedUnconfirmed != q.Unconfirmed {
			r.found("S9", "the counts are not those of the rows", fmt.Sprintf("%+v", q))
		}
		if q.Shown != q.Pending || q.ShownDead != q.Dead || q.ShownDoubtful != q.Unconfirmed {
			r.found("S9", "the view does not show the rows", fmt.Sprintf("%+v", q))
		}
	}
	r.gauges()
}

// gauges compares what relays export with the rows.
func (r *run) gauges() {
	var pending, dead float64
	for _, q := range r.state.Queue {
		pending, dead = pending+float64(q.Pending), dead+float64(q.Dead)
	}
	for process, samples := range r.state.Metrics {
		if v, there := samples[`storefront_engine_pending{kind="interaction"}`]; there && v != pending {
			r.found("S9", "a relay exports another number of pending deliveries", fmt.Sprintf("%s: %v, rows %v", process, v, pending))
		}
		if v, there := samples[`storefront_engine_dead_last_24h{kind="interaction"}`]; there && v != dead {
			r.found("S9", "a relay exports another number of dead deliveries", fmt.Sprintf("%s: %v, rows %v", process, v, dead))
		}
	}
}

// growth is how many more goroutines than at rest a process may have: connections that are kept for a while.
const growth = 200

// Grown says whether a process has more goroutines than it may have, of one that was there at rest.
func Grown(rested map[string]float64, process string, now float64) bool {
	before, known := rested[process]
	return known && now > before+growth
}

// rest is S10.
func (r *run) rest() {
	if r.state.Drain > r.opt.DrainLimit {
		r.found("S10", fmt.Sprintf("not drained within %s", r.opt.DrainLimit), r.state.Drain.String())
	}
	for place, n := range r.state.Lag {
		if n > 0 {
			r.found("S10", "records that nobody has read", fmt.Sprintf("%s: %d", place, n))
		}
	}
	for _, d := range r.state.Pending {
		if !r.ours[d.Connection] {
			continue
		}
		r.found("S10", "a delivery still waits", d.Kind+" "+d.Connection+" "+d.ID)
	}
	if n := r.state.Deadlocks - r.opt.Deadlocks; n > 0 {
		r.found("H9", fmt.Sprintf("PostgreSQL had to end %d deadlocks", n), "")
	}
	for process, samples := range r.state.Metrics {
		if now := samples["go_goroutines"]; Grown(r.opt.Goroutines, process, now) {
			r.found("S10", "goroutines have grown", fmt.Sprintf("%s: %v, before %v", process, now, r.opt.Goroutines[process]))
		}
		for sample, v := range samples {
			if strings.Contains(sample, "_panics_total") && v > 0 {
				r.found("S10", "a handler panicked", process)
			}
		}
	}
}
