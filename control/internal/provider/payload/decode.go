package payload

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
)

// ErrShape is JSON of another shape than was looked for.
var ErrShape = errors.New("payload: the value has another shape")

// ErrJSON is text that is no JSON.
var ErrJSON = errors.New("payload: not JSON")

// Decode reads a value into a struct. The error is ErrJSON or wraps ErrShape, and names members of the struct, not values.
func Decode(text []byte, into any) error {
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
		return &shapeError{at: strings.ReplaceAll(typed.Field, ".", "/")}
	default:
		return &shapeError{}
	}
}

type shapeError struct{ at string }

func (e *shapeError) Error() string {
	if e.at == "" {
		return "wrong_type"
	}
	return "wrong_type at /" + e.at
}

func (e *shapeError) Is(target error) bool { return target == ErrShape }

// Join puts the pieces of one resource together, each as it came, on lines of their own.
func Join(pieces ...[]byte) []byte { return bytes.Join(pieces, []byte("\n")) }
