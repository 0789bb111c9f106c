package check

import (
	"fmt"
	"strings"

	"storefront.internal/deploy/faults/history"
)

// checkStuck checks L8. Work without a connection belongs to the deployment.
func (r *checker) checkStuck() {
	for _, s := range r.state.Stuck {
		if s.Connection == "" && r.opt.Partial || s.Connection != "" && !r.connections[s.Connection] {
			continue
		}
		r.violation("L8", s.What, fmt.Sprintf("%s %s %s", s.Connection, s.ID, s.Detail))
	}
}

// maxDead is the number of dead letters that one fault may cost: each relay believes the engine about ten
// deliveries of each kind.
const maxDead = 2 * 2 * 10

// checkRefusals checks L10.
func (r *checker) checkRefusals() {
	limit := 0
	for _, f := range r.faults {
		if f.Kind == "N12" && strings.Contains(f.Detail, `"status":4`) {
			limit += maxDead
		}
	}
	if n := len(r.state.Dead) + r.opt.Replayed; limit > 0 && n > limit {
		r.violation("L10", "too many deliveries were dead-lettered", fmt.Sprintf("%d, limit %d", n, limit))
	}
}

// checkRedactions checks the second part of S14.
func (r *checker) checkRedactions() {
	named := map[scopedID]bool{}
	for _, c := range r.calls {
		for _, order := range c.begin.Redacts {
			named[scopedID{c.begin.Connection, order}] = true
		}
	}
	for _, o := range r.state.Observations {
		k := scopedID{o.Connection, o.External}
		if o.Redacted != nil && o.Redacted.After(r.opt.Start) && r.connections[o.Connection] && !named[k] {
			r.violation("S14", "an order was redacted that no request names", k.String())
		}
	}
}

// checkErasures checks the first part of S14. An edge whose clock is wrong may date a signal after the
// erasure.
func (r *checker) checkErasures() {
	erased := map[scopedID]bool{}
	for _, c := range r.calls {
		if c.begin.Visitor != "" && c.kind() == history.OK {
			erased[scopedID{c.begin.Connection, c.begin.Visitor}] = true
		}
	}
	for k, s := range r.signals {
		if len(s.attempts) == 0 || !erased[scopedID{k.connection, s.attempts[0].sent.Visitor}] {
			continue
		}
		for _, x := range s.stored {
			if x.Visitor != "" && !s.wrongClock(r) {
				r.violation("S14", "the visitor was erased and is still stored", k.String())
			}
		}
	}
}

// wrongClock reports whether an attempt overlapped with a fault of the clock.
func (s *signalEvidence) wrongClock(r *checker) bool {
	for i := range s.attempts {
		c := s.attempts[i].call
		if r.anyFault(c.begin.At, c.end.At, func(f *history.Fault) bool { return f.Kind == "N13" }) {
			return true
		}
	}
	return false
}
