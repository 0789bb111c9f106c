package catalog

import (
	"unicode/utf16"
	"unicode/utf8"
)

// hexRune reads the code unit of a \uXXXX escape at the start of b.
func hexRune(b []byte) (rune, bool) {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0, false
	}
	var r rune
	for _, c := range b[2:6] {
		switch {
		case c >= '0' && c <= '9':
			r = r<<4 | rune(c-'0')
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			r = r<<4 | rune(c|0x20-'a'+10)
		default:
			return 0, false
		}
	}
	return r, true
}

// unicodeEscape reads the scalar value of the \uXXXX escape, or of the pair of them, at the start of b. The rule is
// empty when the scalar can be stored.
func unicodeEscape(b []byte) (r rune, size int, broken Rule) {
	r, _ = hexRune(b)
	switch {
	case r == 0:
		return 0, 6, NULCharacter
	case !utf16.IsSurrogate(r):
		return r, 6, ""
	}
	low, _ := hexRune(b[6:])
	if r = utf16.DecodeRune(r, low); r == utf8.RuneError {
		return r, 6, LoneSurrogate
	}
	return r, 12, ""
}

// escapesBroken returns the rule that an escape of the quoted text breaks, empty when it is sound.
func escapesBroken(quoted []byte) Rule {
	for i := 0; i < len(quoted); {
		switch {
		case quoted[i] != '\\':
			i++
		case quoted[i+1] != 'u':
			i += 2
		default:
			_, size, broken := unicodeEscape(quoted[i:])
			if broken != "" {
				return broken
			}
			i += size
		}
	}
	return ""
}

// unquote returns what the quoted text says. Escapes are sound: escapesBroken was asked.
func unquote(quoted []byte, escaped bool) []byte {
	inner := quoted[1 : len(quoted)-1]
	if !escaped {
		return inner
	}
	out := make([]byte, 0, len(inner))
	for i := 0; i < len(inner); {
		switch {
		case inner[i] != '\\':
			out = append(out, inner[i])
			i++
		case inner[i+1] != 'u':
			out = append(out, simpleEscape(inner[i+1]))
			i += 2
		default:
			r, size, _ := unicodeEscape(inner[i:])
			out = utf8.AppendRune(out, r)
			i += size
		}
	}
	return out
}

func simpleEscape(c byte) byte {
	switch c {
	case 'b':
		return '\b'
	case 'f':
		return '\f'
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	default:
		return c
	}
}

// appendQuoted appends valid UTF-8 as a JSON string: quotes, backslashes and control characters are escaped, nothing else.
func appendQuoted(dst []byte, s string) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	start := 0
	for i := range len(s) {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		dst = append(dst, s[start:i]...)
		start = i + 1
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\r':
			dst = append(dst, '\\', 'r')
		case '\t':
			dst = append(dst, '\\', 't')
		default:
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&0xf])
		}
	}
	dst = append(dst, s[start:]...)
	return append(dst, '"')
}
