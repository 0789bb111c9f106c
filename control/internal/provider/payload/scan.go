package payload

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"reflect"

	"github.com/go-json-experiment/json/jsontext"
)

// Bounds of what a provider sends. They are far above real answers and the catalog's own bounds.
const (
	maxNodes     = 1 << 18 // values, names and ends of containers in a text: a full page has a third of it
	maxDepth     = 128     // nested containers; metadata of plugins is nested too
	maxList      = 5000    // elements of one list: the catalog's bound of variants and of lines
	maxLanguages = 200     // of one text, as in the catalog
	maxTags      = 1000    // of one item, as in the catalog
)

// ErrTooLarge is the error of JSON with more values than any answer needs.
var ErrTooLarge = errors.New("too_large")

// scanner reads a text without keeping anything of it.
type scanner struct {
	dec   *jsontext.Decoder
	nodes int
}

// newScanner returns a scanner that accepts what encoding/json accepts.
func newScanner(text []byte) *scanner {
	return &scanner{dec: jsontext.NewDecoder(bytes.NewBuffer(text),
		jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))}
}

// token reads a token and counts it.
func (s *scanner) token() error {
	if _, err := s.dec.ReadToken(); err != nil {
		return ErrJSON
	}
	if s.nodes++; s.nodes > maxNodes {
		return ErrTooLarge
	}
	if s.dec.StackDepth() > maxDepth {
		return &shapeError{rule: "too_deep"}
	}
	return nil
}

// value reads a whole value.
func (s *scanner) value() error {
	depth := s.dec.StackDepth()
	for {
		if err := s.token(); err != nil {
			return err
		}
		if s.dec.StackDepth() <= depth {
			return nil
		}
	}
}

// end checks that nothing follows.
func (s *scanner) end() error {
	if _, err := s.dec.ReadToken(); !errors.Is(err, io.EOF) {
		return ErrJSON
	}
	return nil
}

// Check reads a text once, without allocating for its values, and returns ErrJSON, ErrTooLarge, or an error
// that wraps ErrShape for values that are nested too deep.
func Check(text []byte) error {
	s := newScanner(text)
	if err := s.value(); err != nil {
		return err
	}
	return s.end()
}

// Elements returns the elements of an array of at most that many, each as it came, in the memory of the text.
// It stops at the first element too many. null is an empty array.
func Elements(text []byte, most int) ([]json.RawMessage, error) {
	s := newScanner(text)
	if s.dec.PeekKind() != '[' {
		if err := Check(text); err != nil || s.dec.PeekKind() == 'n' {
			return nil, err
		}
		return nil, &shapeError{}
	}
	if err := s.token(); err != nil {
		return nil, err
	}
	var elements []json.RawMessage
	for s.dec.PeekKind() != ']' {
		if s.dec.PeekKind() == 0 {
			return nil, ErrJSON
		}
		if len(elements) == most {
			return nil, &shapeError{rule: "more elements than asked for"}
		}
		start := int(s.dec.InputOffset())
		if err := s.value(); err != nil {
			return nil, err
		}
		end := int(s.dec.InputOffset())
		elements = append(elements, bytes.TrimLeft(text[start:end:end], " \t\r\n,"))
	}
	if err := s.token(); err != nil {
		return nil, err
	}
	if err := s.end(); err != nil {
		return nil, err
	}
	return elements, nil
}

// List is a list of an entity. It is refused before anything is allocated when it has more elements than the
// catalog takes.
type List[T any] []T

// UnmarshalJSON takes an array of at most maxList elements, or null.
func (l *List[T]) UnmarshalJSON(b []byte) error {
	if longer(b, maxList) {
		return tooMany[List[T]]()
	}
	return json.Unmarshal(b, (*[]T)(l))
}

// longer reports whether a container has more than that many elements, or names and values together.
func longer(b []byte, most int) bool {
	if len(b) <= 2*most { // an element has two bytes at least, with its comma
		return false
	}
	dec := newScanner(b).dec
	if _, err := dec.ReadToken(); err != nil {
		return false
	}
	for n := 0; ; n++ {
		switch dec.PeekKind() {
		case ']', '}', 0:
			return false
		}
		if n == most {
			return true
		}
		if dec.SkipValue() != nil {
			return false
		}
	}
}

// tooManyValues marks the one kind of type error that is about a length; encoding/json adds its member.
const tooManyValues = "too_many"

func tooMany[T any]() error {
	return &json.UnmarshalTypeError{Value: tooManyValues, Type: reflect.TypeFor[T]()}
}
