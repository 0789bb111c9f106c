package check

import (
	"time"

	"storefront.internal/deploy/faults/collect"
	"storefront.internal/deploy/faults/history"
)

// stored is S1.
func (r *run) stored() {
	for k, s := range r.subjects {
		switch {
		case s.accepted > 0 && len(s.stored) == 0 && s.parked > 0:
			r.found("S1", "accepted, and parked as what cannot be stored", k.String())
		case s.accepted > 0 && len(s.stored) == 0:
			r.found("S1", "accepted, and not stored", k.String())
		case s.accepted > 0 && len(s.stored) > 1:
			r.found("S1", "accepted, and stored more than once", k.String())
		}
		for _, x := range s.stored {
			if len(s.tries) > 0 && !sentAs(s.tries, x) {
				r.found("S1", "stored otherwise than it was sent", k.String())
			}
		}
		for i := range s.tries {
			t := &s.tries[i]
			if t.is("rejected") && !t.sent.Malformed && !t.sent.Foreign && t.result.Reason != "unknown_decision" {
				r.found("S1", "a sound signal was rejected: "+t.result.Reason, k.String())
			}
		}
	}
}

// sentAs reports whether one of the tries sent what is stored.
func sentAs(tries []try, x *collect.Signal) bool {
	for i := range tries {
		s := tries[i].sent
		if s.Malformed || s.Foreign {
			continue
		}
		at, err := time.Parse(time.RFC3339Nano, s.OccurredAt)
		if err == nil && at.UnixMicro() == x.Occurred && s.Type == x.Type && s.Decision == x.Decision && s.Item == x.Item &&
			s.Variant == x.Variant && same(s.Quantity, x.Quantity) {
			return true
		}
	}
	return false
}

func same(a, b *int) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}

// answers is S2.
func (r *run) answers() {
	for k, s := range r.subjects {
		if s.accepted < 2 {
			continue
		}
		r.measured.ExtraAccepted += s.accepted - 1
		if !r.opt.RedisFaults {
			r.found("S2", "accepted more than once", k.String())
		}
	}
	for _, c := range r.calls {
		if c.begin.Op != history.Signals || c.kind() != history.OK {
			continue
		}
		if !positions(c) {
			r.found("S2", "an answer has not one result per position, in order, each with its signal's id", c.end.RequestID)
		}
	}
}

func positions(c *call) bool {
	if len(c.end.Results) != len(c.begin.Signals) {
		return false
	}
	for i, result := range c.end.Results {
		if result.Index != i || result.ID != c.begin.Signals[i].ID {
			return false
		}
	}
	return true
}

// duplicates is S3.
func (r *run) duplicates() {
	for k, s := range r.subjects {
		for i := range s.tries {
			t := &s.tries[i]
			if !t.is("duplicate") {
				continue
			}
			if !s.before(t) {
				r.found("S3", "duplicate, and nobody had sent it before", k.String())
			}
			if len(s.stored) == 0 {
				r.found("S3", "duplicate, and not stored", k.String())
			}
		}
	}
}

// before reports whether another try began before this one was answered and may have brought the signal.
func (s *subject) before(t *try) bool {
	for i := range s.tries {
		o := &s.tries[i]
		switch {
		case o.refused():
		case o.call == t.call && o.index < t.index:
			return true
		case o.call != t.call && o.call.begin.At < t.call.end.At:
			return true
		}
	}
	return false
}

// phantoms is S4.
func (r *run) phantoms() {
	for k, s := range r.subjects {
		if len(s.stored)+len(s.records)+len(s.receipts)+s.parked > 0 && !s.mayBe() {
			detail := "everybody was refused, and yet it is "
			if len(s.tries) == 0 {
				detail = "nobody sent it, and yet it is "
			}
			r.found("S4", detail+s.where(), k.String())
		}
		for i := range s.tries {
			t := &s.tries[i]
			if (t.sent.Malformed || t.sent.Foreign) && (t.is("accepted") || t.is("duplicate")) {
				r.found("S4", t.result.Status+", and it is wrong on purpose", k.String())
			}
		}
	}
}

// mayBe reports whether a try may have brought the signal.
func (s *subject) mayBe() bool {
	for i := range s.tries {
		if !s.tries[i].refused() {
			return true
		}
	}
	return false
}

func (s *subject) where() string {
	switch {
	case len(s.stored) > 0:
		return "stored"
	case len(s.records) > 0:
		return "in Kafka"
	case len(s.receipts) > 0:
		return "at the engine"
	default:
		return "parked"
	}
}

// unanswered is S5.
func (r *run) unanswered() {
	r.measured.StoredAfter = map[string]int{}
	for k, s := range r.subjects {
		copies := map[string]int{}
		for _, x := range s.records {
			if copies[x.RecordID]++; copies[x.RecordID] == handed+1 {
				r.found("S5", "one request's record was written to Kafka more than twice", k.String())
			}
		}
		if len(s.tries) == 0 || s.accepted+s.dups > 0 || !s.mayBe() {
			continue
		}
		if len(s.stored) > 1 {
			r.found("S5", "never answered, and stored more than once", k.String())
		}
		if len(s.stored) > 0 {
			r.measured.StoredAfter[s.cause()]++
		}
	}
}

// handed is how often a request may hand its record to Kafka: once, and once more within its deadline (hazard H2).
const handed = 2

// cause is how the first try that may have stored the signal ended.
func (s *subject) cause() string {
	for i := range s.tries {
		c := s.tries[i].call
		switch {
		case s.tries[i].refused():
		case !c.ended:
			return "cut off"
		case c.end.Status == 0:
			return "no answer"
		case c.end.Status == 503:
			return "503"
		default:
			return "other status"
		}
	}
	return "no answer"
}

// decisions is S13.
func (r *run) decisions() {
	for k, s := range r.subjects {
		for i := range s.tries {
			t := &s.tries[i]
			if !t.is("rejected") || t.result.Reason != "unknown_decision" {
				continue
			}
			if ours := r.minted[key{k.connection, t.sent.Decision}]; ours || !t.sent.Foreign && !t.sent.Malformed {
				r.found("S13", "unknown_decision, and it is ours", k.String()+" "+t.sent.Decision)
			}
		}
	}
}

// believed is the time after which nobody may take a revoked key any more (contract, section 1, "How soon").
const believed = 15 * time.Second

// revoked is H18.
func (r *run) revoked() {
	ended := map[string]int64{}
	for _, c := range r.calls {
		if c.begin.Op == history.KeyRevoke && c.kind() == history.OK && c.begin.Key != "" {
			ended[c.begin.Key] = c.end.At
		}
	}
	for _, c := range r.calls {
		at, gone := ended[c.begin.Key]
		if gone && c.begin.Op != history.KeyRevoke && c.kind() == history.OK && c.begin.At > at+int64(believed) {
			r.found("H18", "a revoked key was taken", c.begin.Key+" at "+c.begin.Edge)
		}
	}
}
