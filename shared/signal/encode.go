package signal

import (
	"strconv"
	"time"
	"unicode/utf8"

	"storefront.internal/shared/rfc3339"
)

const hex = "0123456789abcdef"

// appendString appends s as a JSON string. Invalid UTF-8 becomes U+FFFD.
func appendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	if plain(s) {
		dst = append(dst, s...)
		return append(dst, '"')
	}
	start := 0
	for i := 0; i < len(s); {
		if c := s[i]; c < utf8.RuneSelf {
			if c >= ' ' && c != '"' && c != '\\' {
				i++
				continue
			}
			dst = append(dst, s[start:i]...)
			dst = appendEscaped(dst, c)
			i++
			start = i
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && size == 1 {
			dst = append(dst, s[start:i]...)
			dst = append(dst, "\ufffd"...)
			start = i + 1
		}
		i += size
	}
	dst = append(dst, s[start:]...)
	return append(dst, '"')
}

// plain reports whether s is printable ASCII that needs no escape, as nearly all texts here are.
func plain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c >= utf8.RuneSelf || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}

func appendEscaped(dst []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(dst, '\\', c)
	default:
		return append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&0xf])
	}
}

// appendMember appends ,"name":"value" unless the value is empty. Names are constants without escapes.
func appendMember(dst []byte, name, value string) []byte {
	if value == "" {
		return dst
	}
	return appendString(appendName(dst, name), value)
}

func appendName(dst []byte, name string) []byte {
	if c := dst[len(dst)-1]; c != '{' && c != '[' {
		dst = append(dst, ',')
	}
	dst = append(dst, '"')
	dst = append(dst, name...)
	return append(dst, '"', ':')
}

func appendNumber(dst []byte, name string, n *int32) []byte {
	if n == nil {
		return dst
	}
	return strconv.AppendInt(appendName(dst, name), int64(*n), 10)
}

func appendTime(dst []byte, name string, t time.Time) []byte {
	dst = append(appendName(dst, name), '"')
	return append(rfc3339.Append(dst, t), '"')
}

func appendVisitor(dst []byte, v *Visitor) []byte {
	if v == nil {
		return dst
	}
	dst = append(appendName(dst, "visitor"), '{')
	dst = appendMember(dst, "visitor_id", string(v.VisitorID))
	dst = appendMember(dst, "session_id", string(v.SessionID))
	return append(dst, '}')
}
