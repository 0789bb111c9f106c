package intake_test

import (
	"testing"
	"time"
)

// Answer is what the client of a call learned of one signal.
type Answer uint8

// The answers.
const (
	noAnswer          Answer = iota // the signal may be recorded at any time from the call's begin on
	answeredAccepted                // recorded by this call
	answeredDuplicate               // recorded before
)

// Call is one request as far as one signal is concerned.
type Call struct {
	Begin, End time.Time
	Answer     Answer
}

// state is the state of a signal: whether it is recorded, and whether a call was answered accepted.
type state struct{ recorded, accepted bool }

// search is the search for an order of the calls of one signal.
type search struct {
	answered   []Call
	unanswered []Call
	forgetful  bool
	failed     map[prefix]bool
}

// prefix is an order of some of the calls.
type prefix struct {
	done  uint64 // a bit per answered call that is in the order
	state state  // after the last of them
}

// linearizable reports whether one order explains the answers to the calls of one signal: each call takes
// effect at an instant between its begin and its end, accepted comes once and before every duplicate. It is
// the search of Wing and Gong. Forgetful allows accepted more than once: Redis lost something. At most 64
// calls may have an answer.
func linearizable(calls []Call, forgetful bool) bool {
	s := search{forgetful: forgetful, failed: map[prefix]bool{}}
	for _, c := range calls {
		if c.Answer == noAnswer {
			s.unanswered = append(s.unanswered, c)
		} else {
			s.answered = append(s.answered, c)
		}
	}
	return s.from(prefix{})
}

// from reports whether the order can be continued with the rest of the calls.
func (s *search) from(p prefix) bool {
	if p.done == 1<<len(s.answered)-1 {
		return true
	}
	if s.failed[p] {
		return false
	}
	for i, c := range s.answered {
		if p.done>>i&1 == 1 || !s.mayBeNext(p, c.Begin) {
			continue
		}
		if next, ok := s.step(p.state, c.Answer); ok && s.from(prefix{p.done | 1<<i, next}) {
			return true
		}
	}
	if !p.state.recorded { // an unanswered call may take effect now
		for _, c := range s.unanswered {
			if s.mayBeNext(p, c.Begin) && s.from(prefix{p.done, state{recorded: true}}) {
				return true
			}
		}
	}
	s.failed[p] = true
	return false
}

// mayBeNext reports whether none of the rest had ended before the call began.
func (s *search) mayBeNext(p prefix, begin time.Time) bool {
	for i, c := range s.answered {
		if p.done>>i&1 == 0 && c.End.Before(begin) {
			return false
		}
	}
	return true
}

func (s *search) step(r state, answer Answer) (state, bool) {
	if answer == answeredDuplicate {
		return r, r.recorded
	}
	return state{recorded: true, accepted: true}, !r.accepted || s.forgetful
}

func TestLinearizable(t *testing.T) {
	t.Parallel()
	call := func(begin, end int, a Answer) Call {
		return Call{Begin: time.Unix(int64(begin), 0), End: time.Unix(int64(end), 0), Answer: a}
	}
	for name, tc := range map[string]struct {
		calls               []Call
		want, whenForgetful bool
	}{
		"nothing": {nil, true, true},
		"one after the other": {[]Call{call(0, 1, answeredAccepted), call(2, 3, answeredDuplicate),
			call(4, 5, answeredDuplicate)},
			true, true},
		"at the same time, the duplicate ends first": {[]Call{call(0, 5, answeredAccepted),
			call(1, 2, answeredDuplicate)}, true, true},
		"a duplicate of nothing": {[]Call{call(0, 1, answeredDuplicate)}, false, false},
		"a duplicate before the accepted began": {[]Call{call(0, 1, answeredDuplicate),
			call(2, 3, answeredAccepted)}, false, false},
		"accepted twice": {[]Call{call(0, 1, answeredAccepted),
			call(2, 3, answeredAccepted)}, false, true},
		"accepted twice at the same time": {[]Call{call(0, 3, answeredAccepted),
			call(1, 2, answeredAccepted)}, false, true},
		"a duplicate of an unanswered call": {[]Call{call(0, 1, noAnswer),
			call(2, 3, answeredDuplicate)}, true, true},
		"a duplicate before an unanswered call": {[]Call{call(0, 1, answeredDuplicate),
			call(2, 3, noAnswer)}, false, false},
		"unanswered, lands late, accepted meanwhile": {[]Call{call(0, 1, noAnswer),
			call(2, 3, answeredAccepted),
			call(4, 5, answeredDuplicate)}, true, true},
		"unanswered, duplicate, and then accepted": {[]Call{call(0, 1, noAnswer),
			call(2, 3, answeredDuplicate), call(4, 5, answeredAccepted)}, true, true},
		"an unanswered call explains no second accepted": {[]Call{call(0, 1, answeredAccepted),
			call(2, 3, noAnswer),
			call(4, 5, answeredAccepted)}, false, true},
	} {
		if got := linearizable(tc.calls, false); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
		if got := linearizable(tc.calls, true); got != tc.whenForgetful {
			t.Errorf("%s, forgetful: %t", name, got)
		}
	}
}
