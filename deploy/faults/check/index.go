package check

import (
	"storefront.internal/deploy/faults/collect"
	"storefront.internal/deploy/faults/history"
)

// key names a signal, or a Decision, of a connection.
type key struct{ connection, id string }

func (k key) String() string { return k.connection + " " + k.id }

// call is a begin and its end.
type call struct {
	begin, end history.Event
	ended      bool
}

// kind is how the call ended; one that was cut off may have done anything.
func (c *call) kind() history.Kind {
	if !c.ended {
		return history.Info
	}
	return c.end.Kind
}

// try is one element of one call. result is nil unless the call was answered by results.
type try struct {
	call   *call
	index  int
	sent   *history.Sent
	result *history.Result
}

func (t *try) is(status string) bool { return t.result != nil && t.result.Status == status }

// refused says that this try certainly stored nothing.
func (t *try) refused() bool { return t.is("rejected") || t.call.kind() == history.Fail }

// subject is everything about one signal id.
type subject struct {
	tries          []try
	stored         []*collect.Signal
	records        []*collect.Record
	receipts       []*collect.Receipt
	pending, dead  int
	parked         int
	accepted, dups int
}

// told reports whether the engine said that it has the signal.
func (s *subject) told() bool {
	for _, r := range s.receipts {
		if r.Result == "created" || r.Result == "exists" {
			return true
		}
	}
	return false
}

// index brings history and state together.
func (r *run) index(events []history.Event) {
	r.subjects, r.ours, r.minted = map[key]*subject{}, map[string]bool{}, map[key]bool{}
	open := map[uint64]*call{}
	for _, e := range events {
		if e.Kind == history.Invoke {
			c := &call{begin: e}
			open[e.Call] = c
			r.calls = append(r.calls, c)
			continue
		}
		if c := open[e.Call]; c != nil {
			c.end, c.ended = e, true
		}
	}
	for _, c := range r.calls {
		if c.begin.Connection != "" {
			r.ours[c.begin.Connection] = true
		}
		switch {
		case c.begin.Op == history.Recommend && c.kind() == history.OK:
			r.minted[key{c.begin.Connection, c.end.Decision}] = true
		case len(c.begin.Signals) > 0:
			r.tries(c)
		}
	}
	r.places()
}

// tries notes the elements of a call of operation 1, or of a probe that looks like one.
func (r *run) tries(c *call) {
	results := map[int]*history.Result{}
	for i := range c.end.Results {
		results[c.end.Results[i].Index] = &c.end.Results[i]
	}
	for i := range c.begin.Signals {
		sent := &c.begin.Signals[i]
		if sent.ID == "" {
			continue
		}
		t := try{call: c, index: i, sent: sent}
		if c.kind() == history.OK {
			t.result = results[i]
		}
		s := r.subject(c.begin.Connection, sent.ID)
		s.tries = append(s.tries, t)
		switch {
		case t.is("accepted"):
			s.accepted++
		case t.is("duplicate"):
			s.dups++
		}
	}
}

func (r *run) subject(connection, id string) *subject {
	k := key{connection, id}
	s := r.subjects[k]
	if s == nil {
		s = &subject{}
		r.subjects[k] = s
	}
	return s
}

// places notes where signals of the history's connections lie. Other connections are of other runs.
func (r *run) places() {
	for i := range r.state.Signals {
		if x := &r.state.Signals[i]; r.ours[x.Connection] {
			s := r.subject(x.Connection, x.ID)
			s.stored = append(s.stored, x)
		}
	}
	for i := range r.state.Topic {
		if x := &r.state.Topic[i]; r.ours[x.Connection] {
			s := r.subject(x.Connection, x.ID)
			s.records = append(s.records, x)
		}
	}
	for i := range r.state.Engine.Receipts {
		if x := &r.state.Engine.Receipts[i]; r.ours[x.Connection] {
			s := r.subject(x.Connection, x.ID)
			s.receipts = append(s.receipts, x)
		}
	}
	for _, x := range r.state.Parked {
		if r.ours[x.Connection] && x.Signal != "" {
			r.subject(x.Connection, x.Signal).parked++
		}
	}
	for _, x := range r.state.Pending {
		if r.ours[x.Connection] && x.Kind == interaction {
			r.subject(x.Connection, x.ID).pending++
		}
	}
	for _, x := range r.state.Dead {
		if r.ours[x.Connection] && x.Kind == interaction {
			r.subject(x.Connection, x.ID).dead++
		}
	}
}

const (
	interaction = "interaction"
	envelope    = "envelope"
)
