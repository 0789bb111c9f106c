package catalog

import (
	"fmt"
	"unicode/utf8"

	"storefront.internal/shared/fault"
)

// MaxObservations is the greatest number of elements of operation 4's body.
const MaxObservations = 500

// Split returns the elements of {"observations": […]}: the exact bytes of each, aliasing the body. It judges the body by
// grammar and UTF-8 alone (contract, section 1 "Strict JSON"); what is wrong inside an element is for ReadObservation.
// No depth exhausts it.
//
// Errors are faults: invalid_request for a body that is no JSON, no object, or has no, an empty or more than one array
// of that name; observation_batch_limit_exceeded for more than MaxObservations elements, all of which are sound JSON.
func Split(body []byte) ([][]byte, error) {
	if !utf8.Valid(body) {
		return nil, fault.Invalid("", "invalid_json", "the body is not UTF-8")
	}
	s := splitter{scanner: scanner{b: body}}
	if !s.body() {
		return nil, fault.Invalid("", "invalid_json", fmt.Sprintf("the body is not JSON: byte %d", s.i))
	}
	return s.verdict()
}

// splitter collects what verdict needs while it walks the body.
type splitter struct {
	scanner
	object   bool // the body is one
	named    int  // how often observations was named with a value
	array    bool // it is one
	count    int
	elements [][]byte
}

func (s *splitter) verdict() ([][]byte, error) {
	const pointer = "/observations"
	switch {
	case !s.object:
		return nil, fault.Invalid("", "invalid_type", "the body must be an object")
	case s.named == 0:
		return nil, fault.Invalid(pointer, "missing", "observations is required")
	case s.named > 1:
		return nil, fault.Invalid(pointer, "duplicate_name", "observations is named twice")
	case !s.array:
		return nil, fault.Invalid(pointer, "invalid_type", "observations must be an array")
	case s.count == 0:
		return nil, fault.Invalid(pointer, "too_few", "observations must have at least 1 element")
	case s.count > MaxObservations:
		return nil, fault.New(fault.ObservationBatchLimitExceeded,
			fmt.Sprintf("at most %d observations per request, got %d", MaxObservations, s.count))
	default:
		return s.elements, nil
	}
}

// body takes the whole text.
func (s *splitter) body() bool {
	if s.object = s.next('{'); s.object {
		if !s.members() {
			return false
		}
	} else if !s.value() {
		return false
	}
	s.space()
	return s.i == len(s.b)
}

func (s *splitter) members() bool {
	if s.next('}') {
		return true
	}
	for {
		name, escaped, ok := s.member()
		if !ok {
			return false
		}
		if escapesOf(name, escaped) == "" && string(unquote(name, escaped)) == "observations" {
			ok = s.observations()
		} else {
			ok = s.value()
		}
		if !ok {
			return false
		}
		if s.next('}') {
			return true
		}
		if !s.next(',') {
			return false
		}
	}
}

func (s *splitter) observations() bool {
	if s.peek() == 'n' {
		return s.value() // null: absent
	}
	s.named++
	if s.array = s.next('['); !s.array {
		return s.value()
	}
	if s.next(']') {
		return true
	}
	for {
		s.space()
		start := s.i
		if !s.value() {
			return false
		}
		if s.count++; s.count <= MaxObservations && s.named == 1 {
			s.elements = append(s.elements, s.b[start:s.i:s.i])
		}
		if s.next(']') {
			return true
		}
		if !s.next(',') {
			return false
		}
	}
}
