package history

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// kindOfLine tells a fault and a stall from an event.
type kindOfLine struct {
	Fault string `json:"fault"`
	Stall int64  `json:"stall_until"`
}

// Read reads a whole history. It returns an error for an end without a begin, two ends of a call, or a clock
// that goes back. A call without an end is valid: its client was canceled, and its outcome is Info.
func Read(r io.Reader) (History, error) {
	var h History
	in := bufio.NewScanner(r)
	in.Buffer(make([]byte, 1<<16), 1<<24)
	c := validator{open: map[uint64]Op{}}
	for n := 1; in.Scan(); n++ {
		if err := h.add(in.Bytes(), &c); err != nil {
			return h, fmt.Errorf("history, line %d: %w", n, err)
		}
	}
	return h, in.Err()
}

func (h *History) add(line []byte, c *validator) error {
	var kind kindOfLine
	if err := json.Unmarshal(line, &kind); err != nil {
		return err
	}
	switch {
	case kind.Fault != "":
		var f Fault
		if err := json.Unmarshal(line, &f); err != nil {
			return err
		}
		h.Faults = append(h.Faults, f)
	case kind.Stall != 0:
		var s Stall
		if err := json.Unmarshal(line, &s); err != nil {
			return err
		}
		h.Stalls = append(h.Stalls, s)
	default:
		var e Event
		if err := json.Unmarshal(line, &e); err != nil {
			return err
		}
		if err := c.add(e); err != nil {
			return err
		}
		h.Events = append(h.Events, e)
	}
	return nil
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
