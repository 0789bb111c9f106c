package catalog

import (
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"storefront.internal/shared/fault"
)

// MaxObservations is the maximum number of elements of one batch.
const MaxObservations = 500

// Split returns the elements of {"observations": […]}: the exact bytes of each, aliasing the body. It checks
// the body for grammar and UTF-8 only; ReadObservation checks what is in an element. Nesting of any depth is
// accepted here.
//
// Its errors are of package fault: invalid_request for a body that is not JSON, not an object, or does not
// have exactly one non-empty array of that name; observation_batch_limit_exceeded for more than
// MaxObservations elements.
func Split(body []byte) ([][]byte, error) {
	if !utf8.Valid(body) {
		return nil, fault.Invalid("", "invalid_json", "the body is not UTF-8")
	}
	s := splitter{body: body}
	err := s.read(body)
	if err != nil {
		if clipped := clipDepth(body); clipped != nil {
			s = splitter{body: body}
			err = s.read(clipped)
		}
	}
	if err != nil {
		return nil, fault.Invalid("", "invalid_json",
			fmt.Sprintf("the body is not JSON: byte %d", s.dec.InputOffset()))
	}
	return s.result()
}

// splitter walks the body and collects what result needs.
type splitter struct {
	body     []byte
	dec      jsontext.Decoder
	object   bool // the body is an object
	named    int  // how often observations occurs with a value
	array    bool // observations is an array
	count    int
	elements [][]byte
}

func (s *splitter) result() ([][]byte, error) {
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

// read takes the whole text, which is the body or its clipped copy.
func (s *splitter) read(text []byte) error {
	decode(&s.dec, text, jsontext.AllowDuplicateNames(true))
	s.object = s.dec.PeekKind() == '{'
	if err := s.members(); err != nil {
		return err
	}
	switch _, err := s.dec.ReadToken(); {
	case err == nil:
		return errTrailing
	case !errors.Is(err, io.EOF):
		return err
	}
	return nil
}

var errTrailing = errors.New("bytes after the value")

func (s *splitter) members() error {
	if !s.object {
		return s.dec.SkipValue()
	}
	if _, err := s.dec.ReadToken(); err != nil {
		return err
	}
	for s.dec.PeekKind() != '}' {
		name, err := s.dec.ReadToken()
		if err != nil {
			return err
		}
		if name.String() == "observations" {
			err = s.observations()
		} else {
			err = s.dec.SkipValue()
		}
		if err != nil {
			return err
		}
	}
	_, err := s.dec.ReadToken()
	return err
}

func (s *splitter) observations() error {
	kind := s.dec.PeekKind()
	if kind != 'n' { // null counts as absent
		s.named++
		s.array = kind == '['
	}
	if kind != '[' {
		return s.dec.SkipValue()
	}
	if _, err := s.dec.ReadToken(); err != nil {
		return err
	}
	for s.dec.PeekKind() != ']' {
		value, err := s.dec.ReadValue()
		if err != nil {
			return err
		}
		end := s.dec.InputOffset()
		if s.count++; s.count <= MaxObservations && s.named == 1 {
			s.elements = append(s.elements, s.body[end-int64(len(value)):end:end])
		}
	}
	_, err := s.dec.ReadToken()
	return err
}
