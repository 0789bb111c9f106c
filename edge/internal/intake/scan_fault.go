package intake

import (
	"strconv"
	"strings"

	"storefront.internal/shared/fault"
)

// scanCode says what is wrong with a whole body; the codes of the problem's errors.
type scanCode string

const (
	badSyntax      scanCode = "invalid_json"
	badUTF8        scanCode = "invalid_utf8"
	duplicateName  scanCode = "duplicate_name"
	tooDeep        scanCode = "too_deep"
	trailingBytes  scanCode = "trailing_bytes"
	wrongType      scanCode = "invalid_type"
	missingSignals scanCode = "missing"
	emptySignals   scanCode = "empty"
)

func (c scanCode) detail() string {
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

// scanFault is the first thing that is wrong with the body, and where: the path at that moment.
type scanFault struct {
	code  scanCode
	depth int
}

func (sc *scanner) fail(code scanCode) bool {
	if sc.fault.code == "" {
		sc.fault = scanFault{code: code, depth: sc.depth}
	}
	return false
}

func (sc *scanner) syntax() bool { return sc.fail(badSyntax) }

// problem returns the fault as the client hears it.
func (sc *scanner) problem() *fault.Error {
	return invalidBody(sc.fault.code, sc.pointer())
}

func invalidBody(code scanCode, pointer string) *fault.Error {
	return fault.Invalid(pointer, string(code), code.detail())
}

// maxPointer bounds what of a body is echoed: a longer pointer ends at the last step that fits.
const maxPointer = 512

// pointer returns the JSON Pointer (RFC 6901) to the place of the fault.
func (sc *scanner) pointer() string {
	var p strings.Builder
	for i := 1; i <= sc.fault.depth; i++ {
		var token string
		switch st := sc.path[i]; st.what {
		case noStep:
			return p.String()
		case indexStep:
			token = strconv.Itoa(int(st.index))
		case nameStep:
			if st.end-st.start > maxPointer {
				return p.String()
			}
			name := appendUnescaped(nil, sc.b[st.start:st.end])
			token = strings.ToValidUTF8(string(name), "\ufffd")
			token = strings.ReplaceAll(strings.ReplaceAll(token, "~", "~0"), "/", "~1")
		}
		if p.Len()+1+len(token) > maxPointer {
			return p.String()
		}
		p.WriteByte('/')
		p.WriteString(token)
	}
	return p.String()
}
