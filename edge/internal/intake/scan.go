package intake

import (
	"slices"
	"strings"
)

// maxDepth is the greatest number of nested containers of a body (contract, section 1 "Strict JSON").
const maxDepth = 32

// kind is the JSON type of a value; the zero value means that the member was not there.
type kind uint8

const (
	absent kind = iota
	null
	boolean
	number
	text
	array
	object
)

// What is known of a value beside its kind.
const (
	escaped    uint8 = 1 << iota // text with escapes
	unstorable                   // text with an escape that yields NUL or no Unicode scalar
	fractional                   // number with a fraction or an exponent
	surplus                      // object with members that are unknown or null
)

// value is the place of a JSON value in the body. A text's span is without its quotes.
type value struct {
	kind       kind
	flags      uint8
	start, end int32
}

// given reports whether the member counts as present: null counts as absent.
func (v *value) given() bool { return v.kind > null }

// step is one level of the way to the place that is being read: a member's name or an index.
type step struct {
	start, end int32 // the name's span, without quotes
	index      int32
	what       stepKind
}

type stepKind uint8

const (
	noStep stepKind = iota
	nameStep
	indexStep
)

// scanner reads one body strictly, in one pass. It judges what concerns the whole body (grammar, UTF-8, nesting,
// member names given twice, anywhere) and notes where the known members of each element are; it judges no element.
type scanner struct {
	b     []byte // the body; the caller's, not kept
	s     string // the same bytes as text, which what is read aliases: a copy where it outlives the body
	pos   int
	depth int
	path  [maxDepth + 2]step
	names []string // names of the unknown members of the open objects

	body    [slotsOfBody]value
	batch   batch
	ignored value // what is read of values that nobody wants
	fault   scanFault
}

func (sc *scanner) reset() {
	sc.b, sc.s, sc.pos, sc.depth = nil, "", 0, 0
	clear(sc.names[:cap(sc.names)])
	sc.names = sc.names[:0]
	clear(sc.body[:])
	sc.batch.reset()
	sc.fault = scanFault{}
}

func (sc *scanner) space() {
	for sc.pos < len(sc.b) {
		switch sc.b[sc.pos] {
		case ' ', '\t', '\n', '\r':
			sc.pos++
		default:
			return
		}
	}
}

// next returns the byte at the position after white space, 0 at the end. (A NUL in the body is refused as well.)
func (sc *scanner) next() byte {
	if sc.pos < len(sc.b) && sc.b[sc.pos] > ' ' {
		return sc.b[sc.pos]
	}
	sc.space()
	if sc.pos < len(sc.b) {
		return sc.b[sc.pos]
	}
	return 0
}

// value reads the value at the position into v; at says which slot v is.
func (sc *scanner) value(v *value, at slot, slots []value) bool {
	c := sc.next()
	switch {
	case c == '"':
		return sc.text(v)
	case c == '{':
		return sc.object(v, at.shape(), slots)
	case c == '[' && at == slotSignals:
		return sc.signals(v)
	case c == '[':
		return sc.array(v)
	case c == '-' || c >= '0' && c <= '9':
		return sc.number(v)
	case c == 't':
		return sc.literal(v, boolean, "true")
	case c == 'f':
		return sc.literal(v, boolean, "false")
	case c == 'n':
		return sc.literal(v, null, "null")
	}
	return sc.syntax()
}

func (sc *scanner) literal(v *value, k kind, word string) bool {
	if !strings.HasPrefix(sc.s[sc.pos:], word) {
		return sc.syntax()
	}
	v.kind, v.start, v.end = k, int32(sc.pos), int32(sc.pos+len(word))
	sc.pos += len(word)
	return true
}

// open enters a container.
func (sc *scanner) open(v *value, k kind) bool {
	v.kind, v.start = k, int32(sc.pos)
	if sc.depth == maxDepth {
		return sc.fail(tooDeep)
	}
	sc.depth++
	sc.path[sc.depth] = step{}
	sc.pos++
	return true
}

func (sc *scanner) close(v *value) bool {
	sc.pos++
	sc.depth--
	v.end = int32(sc.pos)
	return true
}

func (sc *scanner) array(v *value) bool {
	if !sc.open(v, array) {
		return false
	}
	if sc.next() == ']' {
		return sc.close(v)
	}
	for i := int32(0); ; i++ {
		sc.path[sc.depth] = step{what: indexStep, index: i}
		if !sc.value(&sc.ignored, noSlot, nil) {
			return false
		}
		switch sc.next() {
		case ',':
			sc.pos++
		case ']':
			return sc.close(v)
		default:
			return sc.syntax()
		}
	}
}

func (sc *scanner) object(v *value, sh shape, slots []value) bool {
	if !sc.open(v, object) {
		return false
	}
	if sc.next() == '}' {
		return sc.close(v)
	}
	mark := len(sc.names)
	for {
		if !sc.member(v, sh, slots) {
			return false
		}
		switch sc.next() {
		case ',':
			sc.pos++
		case '}':
			return sc.distinct(mark) && sc.close(v)
		default:
			return sc.syntax()
		}
	}
}

func (sc *scanner) member(parent *value, sh shape, slots []value) bool {
	if sc.next() != '"' {
		return sc.syntax()
	}
	var name value
	if !sc.text(&name) {
		return false
	}
	sc.path[sc.depth] = step{what: nameStep, start: name.start, end: name.end}
	if sc.next() != ':' {
		return sc.syntax()
	}
	sc.pos++
	key := sc.string(&name)
	at := sh.find(key)
	if at == noSlot {
		parent.flags |= surplus
		sc.names = append(sc.names, key)
		return sc.value(&sc.ignored, noSlot, nil)
	}
	v := &slots[at]
	if v.kind != absent {
		return sc.fail(duplicateName)
	}
	if !sc.value(v, at, slots) {
		return false
	}
	if v.kind == null {
		parent.flags |= surplus
	}
	return true
}

// fewNames is how many names are compared pair by pair; more are sorted, so that a body of names stays cheap.
const fewNames = 8

// distinct ends an object: it checks that no name since mark is there twice. Known members were checked as they came,
// and an unknown name equals no known one.
func (sc *scanner) distinct(mark int) bool {
	names := sc.names[mark:]
	if len(names) > fewNames {
		slices.Sort(names)
		for i := 1; i < len(names); i++ {
			if names[i] == names[i-1] {
				return sc.fail(duplicateName)
			}
		}
	} else {
		for i := range names {
			if slices.Contains(names[:i], names[i]) {
				return sc.fail(duplicateName)
			}
		}
	}
	sc.names = sc.names[:mark]
	return true
}
