package signaljson

import (
	"encoding/binary"
	"math/bits"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// Eight bytes are checked in one step, as one 64-bit word.
const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// special marks, by its lowest set bit, the first byte of w that ends a run of plain text: a quote, a
// backslash or a control character. Bits above the lowest may be wrong.
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

// readText reads the string at the position: a quote is there.
func (d *Decoder) readText(v *Value) bool {
	end, flags, ok := scanText(d.body, d.pos+1)
	v.Kind, v.flags, v.start, v.end = Text, flags, int32(d.pos+1), int32(end)
	d.pos = end
	if !ok {
		return d.fail(badSyntax)
	}
	d.pos++
	return true
}

// scanText returns the index of the quote that ends the text at i, and what is known of the text; or where
// the text breaks the grammar.
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
		if r == 0 || utf16.IsSurrogate(r) {
			flags |= unstorable
		}
		i += n
	}
}

// readEscape reads the escape at the start of b: its rune, which is a surrogate when it has no partner, and
// its length, which is 0 when it is no JSON escape.
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
	if low, ok := readHex(b[6:]); ok && utf16.IsSurrogate(r) {
		if pair := utf16.DecodeRune(r, low); pair != utf8.RuneError {
			return pair, 12
		}
	}
	return r, 6
}

// readHex reads \uXXXX.
func readHex(b []byte) (rune, bool) {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0, false
	}
	r, err := strconv.ParseUint(string(b[2:6]), 16, 16)
	return rune(r), err == nil
}

func appendUnescaped(dst, b []byte) []byte {
	for i := 0; i < len(b); {
		if b[i] != '\\' {
			dst = append(dst, b[i])
			i++
			continue
		}
		r, n := readEscape(b[i:])
		if utf16.IsSurrogate(r) {
			dst = append(dst, 0xe0|byte(r>>12), 0x80|byte(r>>6)&0x3f, 0x80|byte(r)&0x3f)
		} else {
			dst = utf8.AppendRune(dst, r)
		}
		i += n
	}
	return dst
}

// readNumber reads the number at the position by JSON's grammar.
func (d *Decoder) readNumber(v *Value) bool {
	v.Kind, v.flags, v.start = Number, 0, int32(d.pos)
	i := d.pos
	if d.body[i] == '-' {
		i++
	}
	ok := true
	if i < len(d.body) && d.body[i] == '0' {
		i++
	} else {
		i, ok = digits(d.body, i)
	}
	if ok && i < len(d.body) && d.body[i] == '.' {
		v.flags = fractional
		i, ok = digits(d.body, i+1)
	}
	if ok && i < len(d.body) && d.body[i]|0x20 == 'e' {
		v.flags = fractional
		i++
		if i < len(d.body) && (d.body[i] == '+' || d.body[i] == '-') {
			i++
		}
		i, ok = digits(d.body, i)
	}
	d.pos = i
	if !ok {
		return d.fail(badSyntax)
	}
	v.end = int32(i)
	return true
}

// digits skips digits, at least one.
func digits(b []byte, i int) (int, bool) {
	from := i
	for i < len(b) && b[i] >= '0' && b[i] <= '9' {
		i++
	}
	return i, i > from
}
