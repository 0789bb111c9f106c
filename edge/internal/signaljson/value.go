package signaljson

import "strconv"

// Kind is the JSON type of a value.
type Kind uint8

// The kinds. Absent, the zero value, is the kind of a member that is not there.
const (
	Absent Kind = iota
	Null
	Boolean
	Number
	Text
	Array
	Object
)

// What is known of a value beside its kind.
const (
	escaped    uint8 = 1 << iota // text with escapes
	unstorable                   // text with an escape that yields NUL or no Unicode scalar
	fractional                   // number with a fraction or an exponent
	hasExtra                     // object with members that are unknown or null
)

// Value is the place of a JSON value in the body. A text's span is without its quotes.
type Value struct {
	Kind       Kind
	flags      uint8
	start, end int32
}

// Present reports whether the member counts as present: null counts as absent.
func (v *Value) Present() bool { return v.Kind > Null }

// Storable reports whether the value is a text that PostgreSQL can store: without NUL and lone surrogates.
func (v *Value) Storable() bool { return v.Kind == Text && v.flags&unstorable == 0 }

// HasExtra reports whether the object has members that are unknown or null.
func (v *Value) HasExtra() bool { return v.flags&hasExtra != 0 }

// Raw returns the value as it was sent. It aliases the body.
func (d *Decoder) Raw(v *Value) []byte {
	if v.Kind == Text {
		return d.body[v.start-1 : v.end+1 : v.end+1]
	}
	return d.body[v.start:v.end:v.end]
}

// String returns a text. Without escapes it aliases the body. A lone surrogate is kept as its three bytes, so
// that two different names never look alike; such a text is never stored.
func (d *Decoder) String(v *Value) string {
	if v.flags&escaped == 0 {
		return d.text[v.start:v.end]
	}
	return string(appendUnescaped(make([]byte, 0, v.end-v.start), d.body[v.start:v.end]))
}

// StringsValid reports whether an array holds at most limit texts, each storable and valid.
func (d *Decoder) StringsValid(array *Value, limit int, valid func(string) bool) bool {
	for i, n := int(array.start)+1, 0; ; { // its grammar is known to be right
		switch c := d.body[i]; {
		case c == ']':
			return true
		case c == ',' || c <= ' ':
			i++
		case c != '"' || n == limit:
			return false
		default:
			end, flags, _ := scanText(d.body, i+1)
			v := Value{Kind: Text, flags: flags, start: int32(i + 1), end: int32(end)}
			if !v.Storable() || !valid(d.String(&v)) {
				return false
			}
			i, n = end+1, n+1
		}
	}
}

// Integer returns a number without fraction and exponent from least to most.
func (d *Decoder) Integer(v *Value, least, most int64) (int32, bool) {
	const maxDigits = 10 // more do not fit any range here
	if v.Kind != Number || v.flags&fractional != 0 {
		return 0, false
	}
	digits := d.body[v.start:v.end]
	negative := digits[0] == '-'
	if negative {
		digits = digits[1:]
	}
	if len(digits) > maxDigits {
		return 0, false
	}
	var n int64
	for _, c := range digits {
		n = n*10 + int64(c-'0')
	}
	if negative {
		n = -n
	}
	return int32(n), n >= least && n <= most
}

// Positive reports whether the value is a number greater than 0 and up to most.
func (d *Decoder) Positive(v *Value, most float64) bool {
	if v.Kind != Number {
		return false
	}
	f, err := strconv.ParseFloat(d.text[v.start:v.end], 64)
	return err == nil && f > 0 && f <= most
}
