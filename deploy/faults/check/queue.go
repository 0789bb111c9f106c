package check

import (
	"fmt"
	"strings"
)

// checkQueue checks S9.
func (r *checker) checkQueue() {
	stored := map[string]int{}
	for _, s := range r.state.Signals {
		stored[s.Connection]++
	}
	for connection, n := range stored {
		if r.connections[connection] && n != r.state.Ledger[connection] {
			r.violation("S9", "the ledger does not have each stored signal once",
				fmt.Sprintf("%s: %d, stored %d", connection, r.state.Ledger[connection], n))
		}
	}
	if r.state.LedgerOnly > 0 {
		r.violation("S9", "the ledger has signals that are not stored", fmt.Sprint(r.state.LedgerOnly))
	}
	for k, s := range r.signals {
		switch {
		case s.pending+s.dead > 0 && len(s.stored) == 0:
			r.violation("S9", "pending or dead, but not stored", k.String())
		case s.pending+s.dead > 1:
			r.violation("S9", "in the queue more than once", k.String())
		}
	}
	for _, q := range r.state.Queue {
		if !r.connections[q.Connection] {
			continue
		}
		if q.Counted != q.Pending || q.CountedUnconfirmed != q.Unconfirmed {
			r.violation("S9", "the counts differ from the rows", fmt.Sprintf("%+v", q))
		}
		if q.ViewPending != q.Pending || q.ViewDead != q.Dead || q.ViewUnconfirmed != q.Unconfirmed {
			r.violation("S9", "the queue view differs from the rows", fmt.Sprintf("%+v", q))
		}
	}
	r.checkMetrics()
}

// checkMetrics compares the metrics of the relays with the rows.
func (r *checker) checkMetrics() {
	var pending, dead float64
	for _, q := range r.state.Queue {
		pending, dead = pending+float64(q.Pending), dead+float64(q.Dead)
	}
	for process, samples := range r.state.Metrics {
		if v, there := samples[`storefront_engine_pending{kind="interaction"}`]; there && v != pending {
			r.violation("S9", "a relay exports a wrong number of pending deliveries",
				fmt.Sprintf("%s: %v, rows %v", process, v, pending))
		}
		if v, there := samples[`storefront_engine_dead_last_24h{kind="interaction"}`]; there && v != dead {
			r.violation("S9", "a relay exports a wrong number of dead letters",
				fmt.Sprintf("%s: %v, rows %v", process, v, dead))
		}
	}
}

// maxGoroutineGrowth is the allowed growth of a process, because of connections that remain open for a while.
const maxGoroutineGrowth = 200

// GoroutinesGrew reports whether a process has too many goroutines compared with its idle state before the
// run.
func GoroutinesGrew(idle map[string]float64, process string, now float64) bool {
	before, known := idle[process]
	return known && now > before+maxGoroutineGrowth
}

// checkIdle checks S10 and H9.
func (r *checker) checkIdle() {
	if r.state.Drain > r.opt.DrainLimit {
		r.violation("S10", fmt.Sprintf("not drained within %s", r.opt.DrainLimit), r.state.Drain.String())
	}
	for partition, n := range r.state.Lag {
		if n > 0 {
			r.violation("S10", "unread records", fmt.Sprintf("%s: %d", partition, n))
		}
	}
	for _, d := range r.state.Pending {
		if !r.connections[d.Connection] {
			continue
		}
		r.violation("S10", "a delivery is still pending", d.Kind+" "+d.Connection+" "+d.ID)
	}
	if n := r.state.Deadlocks - r.opt.Deadlocks; n > 0 {
		r.violation("H9", fmt.Sprintf("PostgreSQL resolved %d deadlocks", n), "")
	}
	for process, samples := range r.state.Metrics {
		if now := samples["go_goroutines"]; GoroutinesGrew(r.opt.Goroutines, process, now) {
			r.violation("S10", "the number of goroutines has grown",
				fmt.Sprintf("%s: %v, before %v", process, now, r.opt.Goroutines[process]))
		}
		for sample, v := range samples {
			if strings.Contains(sample, "_panics_total") && v > 0 {
				r.violation("S10", "a handler panicked", process)
			}
		}
	}
}
