package claimstest

import "time"

// Word is how a call ended for one signal, as its client saw it.
type Word uint8

// The words.
const (
	Unseen    Word = iota // no answer, or none that says anything: it may be recorded, at any time from the call's begin on
	Accepted              // recorded by this call
	Duplicate             // recorded before
)

// Call is one request as far as one signal is concerned.
type Call struct {
	Begin, End time.Time
	Word       Word
}

// register is the state of a signal: whether it is recorded, and whether that was told as accepted.
type register struct{ recorded, told bool }

// search is a history of one signal and what was found out about it.
type search struct {
	seen   []Call // those that ended with a word
	unseen []Call
	forget bool
	dead   map[place]bool
}

type place struct {
	done  uint64 // a bit per seen call that has its place already
	state register
}

// Linearizable reports whether the calls of one signal can be put into one order, each somewhere between its begin and
// its end, in which a register could have answered so: accepted once and before every duplicate. It is the search of
// Wing and Gong. Forgetful allows a second accepted: Redis lost something. At most 64 calls may have a word.
func Linearizable(calls []Call, forgetful bool) bool {
	s := search{forget: forgetful, dead: map[place]bool{}}
	for _, c := range calls {
		if c.Word == Unseen {
			s.unseen = append(s.unseen, c)
		} else {
			s.seen = append(s.seen, c)
		}
	}
	return s.from(place{})
}

// from reports whether the rest can be put into an order.
func (s *search) from(p place) bool {
	if p.done == 1<<len(s.seen)-1 {
		return true
	}
	if s.dead[p] {
		return false
	}
	for i, c := range s.seen {
		if p.done>>i&1 == 1 || !s.mayBeNext(p, c.Begin) {
			continue
		}
		if next, ok := s.step(p.state, c.Word); ok && s.from(place{p.done | 1<<i, next}) {
			return true
		}
	}
	if !p.state.recorded { // what nobody saw may take effect now
		for _, c := range s.unseen {
			if s.mayBeNext(p, c.Begin) && s.from(place{p.done, register{recorded: true}}) {
				return true
			}
		}
	}
	s.dead[p] = true
	return false
}

// mayBeNext reports whether none of the rest had ended before the call began.
func (s *search) mayBeNext(p place, begin time.Time) bool {
	for i, c := range s.seen {
		if p.done>>i&1 == 0 && c.End.Before(begin) {
			return false
		}
	}
	return true
}

func (s *search) step(r register, w Word) (register, bool) {
	if w == Duplicate {
		return r, r.recorded
	}
	return register{recorded: true, told: true}, !r.told || s.forget
}
