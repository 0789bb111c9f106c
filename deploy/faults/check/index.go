package check

import (
	"storefront.internal/deploy/faults/collect"
	"storefront.internal/deploy/faults/history"
)

// scopedID identifies a signal or a Decision of a connection.
type scopedID struct{ connection, id string }

func (k scopedID) String() string { return k.connection + " " + k.id }

// call is a call with its end.
type call struct {
	begin, end history.Event
	ended      bool
}

// kind returns the outcome of the call. A canceled call may have had any effect.
func (c *call) kind() history.Kind {
	if !c.ended {
		return history.Info
	}
	return c.end.Kind
}

// attempt is a signal in a call. result is nil unless the response has results.
type attempt struct {
	call   *call
	index  int
	sent   *history.SentSignal
	result *history.SignalResult
}

func (t *attempt) is(status string) bool { return t.result != nil && t.result.Status == status }

// failed reports whether this attempt certainly stored nothing.
func (t *attempt) failed() bool { return t.is("rejected") || t.call.kind() == history.Fail }

// signalEvidence is all that is known about a signal.
type signalEvidence struct {
	attempts             []attempt
	stored               []*collect.Signal
	records              []*collect.TopicSignal
	receipts             []*collect.Receipt
	pending, dead        int
	parked               int
	accepted, duplicates int
}

// confirmed reports whether the engine has confirmed the signal.
func (s *signalEvidence) confirmed() bool {
	for _, r := range s.receipts {
		if r.Result == "created" || r.Result == "exists" {
			return true
		}
	}
	return false
}

// index groups history and state by signal.
func (r *checker) index(events []history.Event) {
	r.signals, r.connections, r.minted = map[scopedID]*signalEvidence{}, map[string]bool{},
		map[scopedID]bool{}
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
			r.connections[c.begin.Connection] = true
		}
		switch {
		case c.begin.Op == history.Recommend && c.kind() == history.OK:
			r.minted[scopedID{c.begin.Connection, c.end.Decision}] = true
		case len(c.begin.Signals) > 0:
			r.addAttempts(c)
		}
	}
	r.indexState()
}

// addAttempts adds the signals of a call.
func (r *checker) addAttempts(c *call) {
	results := map[int]*history.SignalResult{}
	for i := range c.end.Results {
		results[c.end.Results[i].Index] = &c.end.Results[i]
	}
	for i := range c.begin.Signals {
		sent := &c.begin.Signals[i]
		if sent.ID == "" {
			continue
		}
		t := attempt{call: c, index: i, sent: sent}
		if c.kind() == history.OK {
			t.result = results[i]
		}
		s := r.signal(c.begin.Connection, sent.ID)
		s.attempts = append(s.attempts, t)
		switch {
		case t.is("accepted"):
			s.accepted++
		case t.is("duplicate"):
			s.duplicates++
		}
	}
}

func (r *checker) signal(connection, id string) *signalEvidence {
	k := scopedID{connection, id}
	s := r.signals[k]
	if s == nil {
		s = &signalEvidence{}
		r.signals[k] = s
	}
	return s
}

// indexState adds the state of each signal. Connections that are not in the history are of other runs.
func (r *checker) indexState() {
	for i := range r.state.Signals {
		if x := &r.state.Signals[i]; r.connections[x.Connection] {
			s := r.signal(x.Connection, x.ID)
			s.stored = append(s.stored, x)
		}
	}
	for i := range r.state.Topic {
		if x := &r.state.Topic[i]; r.connections[x.Connection] {
			s := r.signal(x.Connection, x.ID)
			s.records = append(s.records, x)
		}
	}
	for i := range r.state.Engine.Receipts {
		if x := &r.state.Engine.Receipts[i]; r.connections[x.Connection] {
			s := r.signal(x.Connection, x.ID)
			s.receipts = append(s.receipts, x)
		}
	}
	for _, x := range r.state.Parked {
		if r.connections[x.Connection] && x.Signal != "" {
			r.signal(x.Connection, x.Signal).parked++
		}
	}
	for _, x := range r.state.Pending {
		if r.connections[x.Connection] && x.Kind == interaction {
			r.signal(x.Connection, x.ID).pending++
		}
	}
	for _, x := range r.state.Dead {
		if r.connections[x.Connection] && x.Kind == interaction {
			r.signal(x.Connection, x.ID).dead++
		}
	}
}

const (
	interaction = "interaction"
	envelope    = "envelope"
)
