package intake

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
)

// Eight bytes are looked at in one step (bit tricks on a 64-bit word).
const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// special marks, in its lowest set bit, the first byte of w that ends a run of plain text: a quote, a backslash or a
// control character. Bits above the lowest may be wrong.
func special(w uint64) uint64 {
	quote := w ^ ones*'"'
	slash := w ^ ones*'\\'
	return ((quote-ones)&^quote | (slash-ones)&^slash | (w-ones*' ')&^w) & highs
}

// plain returns the index of the first special byte at or after i, len(b) when there is none.
func plain(b []byte, i int) int {
	for ; i+8 <= len(b); i += 8 {
		if m := special(binary.LittleEndian.Uint64(b[i:])); m != 0 {
			return i + bits.TrailingZeros64(m)>>3
		}
	}
	for i < len(b) && b[i] != '"' && b[i] != '\\' && b[i] >= ' ' {
		i++
	}
	return i
}

// text reads the string at the position: a quote is there.
func (sc *scanner) text(v *value) bool {
	end, flags, ok := scanText(sc.b, sc.pos+1)
	v.kind, v.flags, v.start, v.end = text, flags, int32(sc.pos+1), int32(end)
	sc.pos = end
	if !ok {
		return sc.syntax()
	}
	sc.pos++
	return true
}

// scanText returns the index of the quote that ends the text at i, and what is known of the text; or where the text
// breaks the grammar.
func scanText(b []byte, i int) (end int, flags uint8, ok bool) {
	for {
		i = plain(b, i)
		switch {
		case i == len(b):
			return i, 0, false
		case b[i] == '"':
			return i, flags, true
		case b[i] != '\\':
			return i, 0, false
		}
		r, n := readEscape(b[i:])
		if n == 0 {
			return i, 0, false
		}
		flags |= escaped
		if r == 0 || surrogate(r) {
			flags |= unstorable
		}
		i += n
	}
}

func surrogate(r rune) bool { return r >= 0xd800 && r < 0xe000 }

// readEscape reads the escape at the start of b: its rune, which is a surrogate when it has no partner, and its
// length, which is 0 when it is no JSON escape.
func readEscape(b []byte) (rune, int) {
	if len(b) < 2 {
		return 0, 0
	}
	switch c := b[1]; c {
	case '"', '\\', '/':
		return rune(c), 2
	case 'b':
		return '\b', 2
	case 'f':
		return '\f', 2
	case 'n':
		return '\n', 2
	case 'r':
		return '\r', 2
	case 't':
		return '\t', 2
	}
	r, ok := readHex(b)
	if !ok {
		return 0, 0
	}
	if r >= 0xd800 && r < 0xdc00 && len(b) >= 12 {
		if low, ok := readHex(b[6:]); ok && low >= 0xdc00 && low < 0xe000 {
			return (r-0xd800)<<10 | (low - 0xdc00) + 0x10000, 12
		}
	}
	return r, 6
}

// readHex reads \uXXXX.
func readHex(b []byte) (rune, bool) {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0, false
	}
	var r rune
	for _, c := range b[2:6] {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}

// string returns the text of v. Without escapes it aliases the body's copy. A surrogate without a partner is kept as
// its three bytes, so that two different names never look alike; such text is never stored.
func (sc *scanner) string(v *value) string {
	if v.flags&escaped == 0 {
		return sc.s[v.start:v.end]
	}
	return string(appendUnescaped(make([]byte, 0, v.end-v.start), sc.b[v.start:v.end]))
}

func appendUnescaped(dst, b []byte) []byte {
	for i := 0; i < len(b); {
		if b[i] != '\\' {
			dst = append(dst, b[i])
			i++
			continue
		}
		r, n := readEscape(b[i:])
		if surrogate(r) {
			dst = append(dst, 0xe0|byte(r>>12), 0x80|byte(r>>6)&0x3f, 0x80|byte(r)&0x3f)
		} else {
			dst = utf8.AppendRune(dst, r)
		}
		i += n
	}
	return dst
}

// number reads the number at the position by JSON's grammar.
func (sc *scanner) number(v *value) bool {
	v.kind, v.flags, v.start = number, 0, int32(sc.pos)
	i := sc.pos
	if sc.b[i] == '-' {
		i++
	}
	ok := true
	if i < len(sc.b) && sc.b[i] == '0' {
		i++
	} else {
		i, ok = digits(sc.b, i)
	}
	if ok && i < len(sc.b) && sc.b[i] == '.' {
		v.flags = fractional
		i, ok = digits(sc.b, i+1)
	}
	if ok && i < len(sc.b) && sc.b[i]|0x20 == 'e' {
		v.flags = fractional
		i++
		if i < len(sc.b) && (sc.b[i] == '+' || sc.b[i] == '-') {
			i++
		}
		i, ok = digits(sc.b, i)
	}
	sc.pos = i
	if !ok {
		return sc.syntax()
	}
	v.end = int32(i)
	return true
}

// digits skips at least one digit.
func digits(b []byte, i int) (int, bool) {
	from := i
	for i < len(b) && b[i] >= '0' && b[i] <= '9' {
		i++
	}
	return i, i > from
}
