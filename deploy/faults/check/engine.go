package check

import (
	"fmt"
	"strings"
	"time"

	"storefront.internal/deploy/faults/history"
)

// delivered is S6.
func (r *run) delivered() {
	for k, s := range r.subjects {
		if len(s.stored) > 0 && !s.told() && s.pending == 0 && s.dead == 0 {
			r.found("S6", "stored, and neither at the engine nor waiting nor dead", k.String())
		}
		if len(s.stored) == 0 && len(s.receipts) > 0 {
			r.found("S6", "at the engine, and not stored", k.String())
		}
		if s.bodies() > 1 {
			r.found("S6", "delivered with two bodies", k.String())
		}
	}
	for _, x := range r.state.Engine.Receipts {
		if x.Connection == "" || x.ID == "" {
			r.found("S6", "the engine got an interaction of nobody", x.Connection+" "+x.ID)
		}
	}
}

// bodies counts the bodies with which the signal was delivered. One whose visitor is erased between an attempt that nobody confirmed
// and the next has two, of which one lacks the visitor; each of them counts alone.
func (s *subject) bodies() int {
	forgotten := len(s.tries) > 0 && s.tries[0].sent.Forgotten
	seen := map[bool]map[[16]byte]bool{false: {}, true: {}}
	for _, receipt := range s.receipts {
		seen[forgotten && receipt.Visitor == ""][receipt.Digest] = true
	}
	return max(len(seen[false]), len(seen[true]))
}

// settling is how long after a window of 401 its refusals may still come in.
const settling = 2 * time.Second

// probes is how many requests may try a refused credential again in one window: one of each person who resumes, and one that
// nobody heard of.
const probes = 2

// refusals is the second half of S6: a credential that the engine refused is let alone.
func (r *run) refusals() {
	if r.opt.InFlight == 0 {
		return
	}
	for _, f := range r.faults {
		if f.Kind != "N12" || !strings.Contains(f.Detail, "401") {
			continue
		}
		from, to := r.opt.Start.Add(time.Duration(f.At)), r.opt.Start.Add(time.Duration(f.Until)+settling)
		n := 0
		for _, x := range r.state.Engine.Refusals {
			if x.Delivery && !x.At.Before(from) && !x.At.After(to) {
				n++
			}
		}
		if n > r.opt.InFlight+probes {
			r.found("S6", fmt.Sprintf("a refused credential was tried %d times, %d may have been under way", n, r.opt.InFlight), f.Detail)
		}
	}
}

// canaries is S8.
func (r *run) canaries() {
	for k, s := range r.subjects {
		if len(s.tries) == 0 {
			continue
		}
		want := ""
		for i := range s.tries {
			if c := s.tries[i].sent.Canary; c != "" {
				want = c
			}
		}
		if want == "" {
			continue
		}
		if want != history.Canary(k.connection, k.id) {
			r.found("S8", "the client sent another signal's canary", k.String())
		}
		for _, x := range s.stored {
			r.canary("stored", k, x.Visitor, want)
		}
		for _, x := range s.records {
			r.canary("in Kafka", k, x.Visitor, want)
		}
		for _, x := range s.receipts {
			r.canary("at the engine", k, x.Visitor, want)
		}
	}
}

func (r *run) canary(where string, k key, visitor, want string) {
	if visitor != "vis_"+want {
		r.found("S8", where+" with another visitor than was sent", k.String())
	}
}
