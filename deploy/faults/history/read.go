package history

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// entry is an event or a fault.
type entry struct {
	Event
	Fault  string `json:"fault"`
	Until  int64  `json:"until"`
	Detail string `json:"detail"`
}

// Read reads a whole history. It returns an error for an end without a begin, two ends of a call, or a clock
// that goes back. A call without an end is valid: its client was canceled, and its outcome is Info.
func Read(r io.Reader) ([]Event, []Fault, error) {
	var events []Event
	var faults []Fault
	in := bufio.NewScanner(r)
	in.Buffer(make([]byte, 1<<16), 1<<24)
	c := validator{open: map[uint64]Op{}}
	for n := 1; in.Scan(); n++ {
		var l entry
		if err := json.Unmarshal(in.Bytes(), &l); err != nil {
			return nil, nil, fmt.Errorf("history, line %d: %w", n, err)
		}
		if l.Fault != "" {
			faults = append(faults, Fault{At: l.At, Until: l.Until, Kind: l.Fault, Detail: l.Detail})
			continue
		}
		if err := c.add(l.Event); err != nil {
			return nil, nil, fmt.Errorf("history, line %d: %w", n, err)
		}
		events = append(events, l.Event)
	}
	return events, faults, in.Err()
}

// validator checks the order of events.
type validator struct {
	open map[uint64]Op
	last int64
}

func (c *validator) add(e Event) error {
	if e.At < c.last {
		return errors.New("the clock went back")
	}
	c.last = e.At
	op, open := c.open[e.Call]
	switch e.Kind {
	case Invoke:
		if open {
			return fmt.Errorf("call %d begins twice", e.Call)
		}
		c.open[e.Call] = e.Op
		return nil
	case OK, Fail, Info:
		if !open || op != e.Op {
			return fmt.Errorf("call %d (%s) ends and is not open", e.Call, e.Op)
		}
		delete(c.open, e.Call)
		return nil
	}
	return fmt.Errorf("unknown kind %q", e.Kind)
}
