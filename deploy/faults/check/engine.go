package check

import (
	"fmt"
	"strings"
	"time"

	"storefront.internal/deploy/faults/history"
)

// checkDelivered checks the first part of S6.
func (r *checker) checkDelivered() {
	for k, s := range r.signals {
		if len(s.stored) > 0 && !s.confirmed() && s.pending == 0 && s.dead == 0 {
			r.violation("S6", "stored, but neither delivered nor pending nor dead", k.String())
		}
		if len(s.stored) == 0 && len(s.receipts) > 0 {
			r.violation("S6", "at the engine, but not stored", k.String())
		}
		if s.bodies() > 1 {
			r.violation("S6", "delivered with two bodies", k.String())
		}
	}
	for _, x := range r.state.Engine.Receipts {
		if x.Connection == "" || x.ID == "" {
			r.violation("S6", "the engine has an interaction without a connection or id",
				x.Connection+" "+x.ID)
		}
	}
}

// bodies returns the number of bodies with which the signal was delivered. An erasure between two attempts
// legally changes the body once, by removing the visitor.
func (s *signalEvidence) bodies() int {
	erased := len(s.attempts) > 0 && s.attempts[0].sent.VisitorErased
	seen := map[bool]map[[16]byte]bool{false: {}, true: {}}
	for _, receipt := range s.receipts {
		seen[erased && receipt.Visitor == ""][receipt.Digest] = true
	}
	return max(len(seen[false]), len(seen[true]))
}

// lateResponses is the time after a fault with 401 in which its responses may still arrive.
const lateResponses = 2 * time.Second

// maxProbes is the number of requests with a rejected credential that operators may cause with
// resume_delivery.
const maxProbes = 2

// checkUnauthorized checks the second part of S6: a rejected credential is not used again.
func (r *checker) checkUnauthorized() {
	if r.opt.InFlight == 0 {
		return
	}
	for _, f := range r.faults {
		if f.Kind != "N12" || !strings.Contains(f.Detail, "401") {
			continue
		}
		from, to := r.opt.Start.Add(time.Duration(f.At)),
			r.opt.Start.Add(time.Duration(f.Until)+lateResponses)
		n := 0
		for _, x := range r.state.Engine.Unauthorized {
			if x.Delivery && !x.At.Before(from) && !x.At.After(to) {
				n++
			}
		}
		if n > r.opt.InFlight+maxProbes {
			r.violation("S6", fmt.Sprintf("a rejected credential was used %d times, with at most %d "+
				"requests in flight", n, r.opt.InFlight), f.Detail)
		}
	}
}

// checkCanaries checks S8.
func (r *checker) checkCanaries() {
	for k, s := range r.signals {
		if len(s.attempts) == 0 {
			continue
		}
		want := ""
		for i := range s.attempts {
			if c := s.attempts[i].sent.Canary; c != "" {
				want = c
			}
		}
		if want == "" {
			continue
		}
		if want != history.Canary(k.connection, k.id) {
			r.violation("S8", "the client sent the canary of another signal", k.String())
		}
		for _, x := range s.stored {
			r.checkCanary("stored", k, x.Visitor, want)
		}
		for _, x := range s.records {
			r.checkCanary("in Kafka", k, x.Visitor, want)
		}
		for _, x := range s.receipts {
			r.checkCanary("at the engine", k, x.Visitor, want)
		}
	}
}

func (r *checker) checkCanary(where string, k scopedID, visitor, want string) {
	if visitor != "vis_"+want {
		r.violation("S8", where+" with another visitor than it was sent with", k.String())
	}
}
