package catalog

// scanner walks JSON text by the grammar of RFC 8259. Its methods advance past what they name and report whether it was
// there. It judges grammar alone; UTF-8 is judged for the whole text at once by the callers.
type scanner struct {
	b []byte
	i int
}

// space skips white space.
func (s *scanner) space() {
	for s.i < len(s.b) {
		switch s.b[s.i] {
		case ' ', '\t', '\n', '\r':
			s.i++
		default:
			return
		}
	}
}

// next skips white space and takes the byte c.
func (s *scanner) next(c byte) bool {
	s.space()
	if s.i < len(s.b) && s.b[s.i] == c {
		s.i++
		return true
	}
	return false
}

// peek returns the byte after white space, 0 at the end.
func (s *scanner) peek() byte {
	s.space()
	if s.i < len(s.b) {
		return s.b[s.i]
	}
	return 0
}

// text takes a string, its quotes included, and says whether it holds escapes.
func (s *scanner) text() (escaped, ok bool) {
	if s.i >= len(s.b) || s.b[s.i] != '"' {
		return false, false
	}
	for i := s.i + 1; i < len(s.b); i++ {
		switch c := s.b[i]; {
		case c == '"':
			s.i = i + 1
			return escaped, true
		case c == '\\':
			escaped = true
			n := escapeLength(s.b[i:])
			if n == 0 {
				return escaped, false
			}
			i += n - 1
		case c < ' ':
			return escaped, false
		}
	}
	return escaped, false
}

// escapeLength returns the length of the escape at the start of b, 0 when it is none.
func escapeLength(b []byte) int {
	if len(b) < 2 {
		return 0
	}
	switch b[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		if _, ok := hexRune(b); ok {
			return 6
		}
	}
	return 0
}

// member takes a member's name and its colon and returns the name with its quotes.
func (s *scanner) member() (name []byte, escaped, ok bool) {
	s.space()
	start := s.i
	if escaped, ok = s.text(); !ok {
		return nil, false, false
	}
	name = s.b[start:s.i]
	return name, escaped, s.next(':')
}

// number takes a number.
func (s *scanner) number() bool {
	if s.i < len(s.b) && s.b[s.i] == '-' {
		s.i++
	}
	if s.i < len(s.b) && s.b[s.i] == '0' {
		s.i++
	} else if !s.digits() {
		return false
	}
	if s.i < len(s.b) && s.b[s.i] == '.' {
		s.i++
		if !s.digits() {
			return false
		}
	}
	if s.i < len(s.b) && s.b[s.i]|0x20 == 'e' {
		s.i++
		if s.i < len(s.b) && (s.b[s.i] == '+' || s.b[s.i] == '-') {
			s.i++
		}
		return s.digits()
	}
	return true
}

func (s *scanner) digits() bool {
	start := s.i
	for s.i < len(s.b) && s.b[s.i] >= '0' && s.b[s.i] <= '9' {
		s.i++
	}
	return s.i > start
}

// scalar takes a string, a number, true, false or null.
func (s *scanner) scalar() bool {
	if s.i >= len(s.b) {
		return false
	}
	switch s.b[s.i] {
	case '"':
		_, ok := s.text()
		return ok
	case 't':
		return s.literal("true")
	case 'f':
		return s.literal("false")
	case 'n':
		return s.literal("null")
	default:
		return s.number()
	}
}

func (s *scanner) literal(word string) bool {
	if len(s.b)-s.i < len(word) || string(s.b[s.i:s.i+len(word)]) != word {
		return false
	}
	s.i += len(word)
	return true
}

// value takes any value. What is open is a bit per container, so depth costs neither stack nor more memory than an
// eighth of the text.
func (s *scanner) value() bool {
	var open bits
	for {
		entered, ok := s.enter(&open)
		if !ok {
			return false
		}
		if entered {
			continue
		}
		if more, ok := s.leave(&open); !ok || !more {
			return ok
		}
	}
}

// enter takes a scalar or an empty container whole, or the opening of another one up to its first value.
func (s *scanner) enter(open *bits) (entered, ok bool) {
	switch s.peek() {
	case '{':
		s.i++
		if s.next('}') {
			return false, true
		}
		open.push(true)
		_, _, ok = s.member()
		return true, ok
	case '[':
		s.i++
		if s.next(']') {
			return false, true
		}
		open.push(false)
		return true, true
	default:
		return false, s.scalar()
	}
}

// leave takes what follows a value: closings, then a comma (and a name) when there is more.
func (s *scanner) leave(open *bits) (more, ok bool) {
	for open.n > 0 {
		object := open.top()
		switch c := s.peek(); {
		case c == ',':
			s.i++
			if object {
				_, _, ok = s.member()
				return true, ok
			}
			return true, true
		case c == '}' && object, c == ']' && !object:
			s.i++
			open.n--
		default:
			return false, false
		}
	}
	return false, true
}

// bits is a stack of booleans.
type bits struct {
	first uint64
	rest  []uint64
	n     int
}

func (b *bits) push(v bool) {
	word := b.word(b.n)
	mask := uint64(1) << (b.n % 64)
	*word &^= mask
	if v {
		*word |= mask
	}
	b.n++
}

func (b *bits) top() bool { return *b.word(b.n - 1)>>((b.n-1)%64)&1 == 1 }

func (b *bits) word(n int) *uint64 {
	if n < 64 {
		return &b.first
	}
	if n/64 > len(b.rest) {
		b.rest = append(b.rest, 0)
	}
	return &b.rest[n/64-1]
}
