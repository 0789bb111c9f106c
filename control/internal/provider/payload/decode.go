package payload

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"strings"
)

// ErrShape is the error of JSON with another shape than expected.
var ErrShape = errors.New("payload: the value has another shape")

// ErrJSON is the error of text that is not JSON.
var ErrJSON = errors.New("payload: not JSON")

// Decode reads a value into a struct. The error is ErrJSON, ErrTooLarge, or wraps ErrShape; it names members
// of the struct, not values.
func Decode(text []byte, into any) error {
	if err := Check(text); err != nil {
		return err
	}
	err := json.Unmarshal(text, into)
	var (
		typed  *json.UnmarshalTypeError
		syntax *json.SyntaxError
	)
	switch {
	case err == nil:
		return nil
	case errors.As(err, &syntax):
		return ErrJSON
	case errors.As(err, &typed):
		shape := &shapeError{at: strings.ReplaceAll(typed.Field, ".", "/")}
		if typed.Value == tooManyValues {
			shape.rule = tooManyValues
		}
		return shape
	default:
		return &shapeError{}
	}
}

// Peek reads the members that name an entity, from a text that Decode may not accept. What cannot be
// read stays zero.
func Peek(text []byte, into any) { _ = json.Unmarshal(text, into) }

type shapeError struct{ rule, at string }

func (e *shapeError) Error() string {
	rule := cmp.Or(e.rule, "wrong_type")
	if e.at == "" {
		return rule
	}
	return rule + " at /" + e.at
}

func (e *shapeError) Is(target error) bool { return target == ErrShape }

// JoinLines joins the parts of one entity, each as it came, on lines of their own.
func JoinLines(pieces ...[]byte) []byte { return bytes.Join(pieces, []byte("\n")) }
