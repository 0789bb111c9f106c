package check

import (
	"time"

	"storefront.internal/deploy/faults/collect"
	"storefront.internal/deploy/faults/history"
)

// checkStored checks S1.
func (r *checker) checkStored() {
	for k, s := range r.signals {
		switch {
		case s.accepted > 0 && len(s.stored) == 0 && s.parked > 0:
			r.violation("S1", "accepted, but parked", k.String())
		case s.accepted > 0 && len(s.stored) == 0:
			r.violation("S1", "accepted, but not stored", k.String())
		case s.accepted > 0 && len(s.stored) > 1:
			r.violation("S1", "accepted, and stored more than once", k.String())
		}
		for _, x := range s.stored {
			if len(s.attempts) > 0 && !sentAs(s.attempts, x) {
				r.violation("S1", "not stored as it was sent", k.String())
			}
		}
		for i := range s.attempts {
			t := &s.attempts[i]
			if t.is("rejected") && !t.sent.Malformed && !t.sent.ForeignDecision &&
				t.result.Reason != "unknown_decision" {
				r.violation("S1", "a valid signal was rejected: "+t.result.Reason, k.String())
			}
		}
	}
}

// sentAs reports whether one of the attempts sent the signal as it is stored.
func sentAs(tries []attempt, x *collect.Signal) bool {
	for i := range tries {
		s := tries[i].sent
		if s.Malformed || s.ForeignDecision {
			continue
		}
		at, err := time.Parse(time.RFC3339Nano, s.OccurredAt)
		if err == nil && at.UnixMicro() == x.Occurred && s.Type == x.Type && s.Decision == x.Decision &&
			s.Item == x.Item &&
			s.Variant == x.Variant && equal(s.Quantity, x.Quantity) {
			return true
		}
	}
	return false
}

func equal(a, b *int) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}

// checkResults checks S2.
func (r *checker) checkResults() {
	for k, s := range r.signals {
		if s.accepted < 2 {
			continue
		}
		r.stats.ExtraAccepted += s.accepted - 1
		if !r.opt.RedisFaults {
			r.violation("S2", "accepted more than once", k.String())
		}
	}
	for _, c := range r.calls {
		if c.begin.Op != history.Signals || c.kind() != history.OK {
			continue
		}
		if !resultsMatch(c) {
			r.violation("S2", "a response does not have one result per position with the id of its signal",
				c.end.RequestID)
		}
	}
}

func resultsMatch(c *call) bool {
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

// checkDuplicates checks S3.
func (r *checker) checkDuplicates() {
	for k, s := range r.signals {
		for i := range s.attempts {
			t := &s.attempts[i]
			if !t.is("duplicate") {
				continue
			}
			if !s.sentBefore(t) {
				r.violation("S3", "duplicate, but not sent before", k.String())
			}
			if len(s.stored) == 0 {
				r.violation("S3", "duplicate, but not stored", k.String())
			}
		}
	}
}

// sentBefore reports whether another attempt began before the end of this one and may have stored the signal.
func (s *signalEvidence) sentBefore(t *attempt) bool {
	for i := range s.attempts {
		o := &s.attempts[i]
		switch {
		case o.failed():
		case o.call == t.call && o.index < t.index:
			return true
		case o.call != t.call && o.call.begin.At < t.call.end.At:
			return true
		}
	}
	return false
}

// checkPhantoms checks S4.
func (r *checker) checkPhantoms() {
	for k, s := range r.signals {
		if len(s.stored)+len(s.records)+len(s.receipts)+s.parked > 0 && !s.mayExist() {
			detail := "only sent in failed requests, but it is "
			if len(s.attempts) == 0 {
				detail = "never sent, but it is "
			}
			r.violation("S4", detail+s.location(), k.String())
		}
		for i := range s.attempts {
			t := &s.attempts[i]
			if (t.sent.Malformed || t.sent.ForeignDecision) && (t.is("accepted") || t.is("duplicate")) {
				r.violation("S4", t.result.Status+", although it is invalid on purpose", k.String())
			}
		}
	}
}

// mayExist reports whether an attempt may have stored the signal.
func (s *signalEvidence) mayExist() bool {
	for i := range s.attempts {
		if !s.attempts[i].failed() {
			return true
		}
	}
	return false
}

func (s *signalEvidence) location() string {
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

// checkUnanswered checks S5.
func (r *checker) checkUnanswered() {
	r.stats.StoredAfter = map[string]int{}
	for k, s := range r.signals {
		copies := map[string]int{}
		for _, x := range s.records {
			if copies[x.RecordID]++; copies[x.RecordID] == maxProduceAttempts+1 {
				r.violation("S5", "the record of one request was written to Kafka more than twice",
					k.String())
			}
		}
		if len(s.attempts) == 0 || s.accepted+s.duplicates > 0 || !s.mayExist() {
			continue
		}
		if len(s.stored) > 1 {
			r.violation("S5", "stored more than once without a response", k.String())
		}
		if len(s.stored) > 0 {
			r.stats.StoredAfter[s.firstOutcome()]++
		}
	}
}

// maxProduceAttempts is how often a request may write its record to Kafka: once, and once again within its
// deadline.
const maxProduceAttempts = 2

// firstOutcome returns the outcome of the first attempt that may have stored the signal.
func (s *signalEvidence) firstOutcome() string {
	for i := range s.attempts {
		c := s.attempts[i].call
		switch {
		case s.attempts[i].failed():
		case !c.ended:
			return "canceled"
		case c.end.Status == 0:
			return "no response"
		case c.end.Status == 503:
			return "503"
		default:
			return "other status"
		}
	}
	return "no response"
}

// checkDecisions checks S13.
func (r *checker) checkDecisions() {
	for k, s := range r.signals {
		for i := range s.attempts {
			t := &s.attempts[i]
			if !t.is("rejected") || t.result.Reason != "unknown_decision" {
				continue
			}
			if ours := r.minted[scopedID{k.connection, t.sent.Decision}]; ours || !t.sent.ForeignDecision &&
				!t.sent.Malformed {
				r.violation("S13", "unknown_decision for a Decision of the connection",
					k.String()+" "+t.sent.Decision)
			}
		}
	}
}

// revocationLimit is the time after which a revoked key must be rejected.
const revocationLimit = 15 * time.Second

// checkRevokedKeys checks H18.
func (r *checker) checkRevokedKeys() {
	ended := map[string]int64{}
	for _, c := range r.calls {
		if c.begin.Op == history.KeyRevoke && c.kind() == history.OK && c.begin.Key != "" {
			ended[c.begin.Key] = c.end.At
		}
	}
	for _, c := range r.calls {
		at, gone := ended[c.begin.Key]
		if gone && c.begin.Op != history.KeyRevoke && c.kind() == history.OK &&
			c.begin.At > at+int64(revocationLimit) {
			r.violation("H18", "a revoked key was accepted", c.begin.Key+" at "+c.begin.Edge)
		}
	}
}
