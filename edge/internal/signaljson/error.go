package signaljson

import (
	"strconv"
	"strings"

	"storefront.internal/shared/fault"
)

// errorCode says what is wrong with a body; the code of the problem's one field error.
type errorCode string

const (
	badSyntax      errorCode = "invalid_json"
	badUTF8        errorCode = "invalid_utf8"
	duplicateName  errorCode = "duplicate_name"
	tooDeep        errorCode = "too_deep"
	trailingBytes  errorCode = "trailing_bytes"
	wrongType      errorCode = "invalid_type"
	missingSignals errorCode = "missing"
	emptySignals   errorCode = "empty"
)

func (c errorCode) detail() string {
	switch c {
	case badUTF8:
		return "The body is not valid UTF-8."
	case duplicateName:
		return "A member name is there twice in one object."
	case tooDeep:
		return "More than 32 containers are nested."
	case trailingBytes:
		return "Bytes follow the JSON value."
	case wrongType:
		return "The value has the wrong JSON type."
	case missingSignals:
		return "The member signals is missing."
	case emptySignals:
		return "The array signals is empty."
	default:
		return "The body is not valid JSON."
	}
}

// failure is the first error of the body. Its place is the path at that moment, down to the depth.
type failure struct {
	code  errorCode
	depth int
}

func (d *Decoder) fail(code errorCode) bool {
	if d.failure.code == "" {
		d.failure = failure{code: code, depth: d.depth}
	}
	return false
}

// problem returns the failure as the client gets it.
func (d *Decoder) problem() *fault.Error { return invalidBody(d.failure.code, d.pointer()) }

func invalidBody(code errorCode, pointer string) *fault.Error {
	return fault.Invalid(pointer, string(code), code.detail())
}

// pointer returns the JSON Pointer (RFC 6901) to the failure. It ends at the last step that fits maxPointer,
// which bounds how much of a body is echoed.
func (d *Decoder) pointer() string {
	const maxPointer = 512
	var p strings.Builder
	for _, step := range d.path[1 : d.failure.depth+1] {
		var token string
		switch step.kind {
		case noStep:
			return p.String()
		case indexStep:
			token = strconv.Itoa(int(step.index))
		case nameStep:
			if step.end-step.start > maxPointer {
				return p.String()
			}
			name := appendUnescaped(nil, d.body[step.start:step.end])
			token = strings.NewReplacer("~", "~0", "/",
				"~1").Replace(strings.ToValidUTF8(string(name), "\ufffd"))
		}
		if p.Len()+1+len(token) > maxPointer {
			return p.String()
		}
		p.WriteByte('/')
		p.WriteString(token)
	}
	return p.String()
}
