package signaljson

import (
	"slices"
	"strings"
)

// maxDepth is the greatest number of nested containers of a body.
const maxDepth = 32

// pathStep is one level of the path to the value that is being read: a member's name or an index.
type pathStep struct {
	start, end int32 // the name's span, without quotes
	index      int32
	kind       stepKind
}

type stepKind uint8

const (
	noStep stepKind = iota
	nameStep
	indexStep
)

func (d *Decoder) skipSpace() {
	for d.pos < len(d.body) {
		switch d.body[d.pos] {
		case ' ', '\t', '\n', '\r':
			d.pos++
		default:
			return
		}
	}
}

// next returns the byte at the position after white space, 0 at the end. (A NUL in the body is an error as
// well.)
func (d *Decoder) next() byte {
	if d.pos < len(d.body) && d.body[d.pos] > ' ' {
		return d.body[d.pos]
	}
	d.skipSpace()
	if d.pos < len(d.body) {
		return d.body[d.pos]
	}
	return 0
}

// readValue reads the value at the position into v, which is the value of member m of an object with those
// members.
func (d *Decoder) readValue(v *Value, m Member, members *[memberCount]Value) bool {
	c := d.next()
	switch {
	case c == '"':
		return d.readText(v)
	case c == '{':
		return d.readObject(v, m, members)
	case c == '[' && m == signals:
		return d.readArray(v, d.readElement)
	case c == '[':
		return d.readArray(v, d.skipValue)
	case c == '-' || c >= '0' && c <= '9':
		return d.readNumber(v)
	case c == 't':
		return d.readLiteral(v, Boolean, "true")
	case c == 'f':
		return d.readLiteral(v, Boolean, "false")
	case c == 'n':
		return d.readLiteral(v, Null, "null")
	}
	return d.fail(badSyntax)
}

// skipValue reads a value of no interest.
func (d *Decoder) skipValue() bool { return d.readValue(&d.ignored, unknown, nil) }

// readElement reads the next element of signals.
func (d *Decoder) readElement() bool {
	i := d.count
	d.count++
	if i >= MaxSignals {
		return d.skipValue()
	}
	e := &d.elements[i]
	if d.next() == '{' {
		return d.readObject(&e.self, element, &e.members)
	}
	return d.readValue(&e.self, unknown, nil)
}

func (d *Decoder) readLiteral(v *Value, kind Kind, word string) bool {
	if !strings.HasPrefix(d.text[d.pos:], word) {
		return d.fail(badSyntax)
	}
	v.Kind, v.start, v.end = kind, int32(d.pos), int32(d.pos+len(word))
	d.pos += len(word)
	return true
}

// open enters a container.
func (d *Decoder) open(v *Value, kind Kind) bool {
	v.Kind, v.start = kind, int32(d.pos)
	if d.depth == maxDepth {
		return d.fail(tooDeep)
	}
	d.depth++
	d.path[d.depth] = pathStep{}
	d.pos++
	return true
}

func (d *Decoder) close(v *Value) bool {
	d.pos++
	d.depth--
	v.end = int32(d.pos)
	return true
}

func (d *Decoder) readArray(v *Value, read func() bool) bool {
	if !d.open(v, Array) {
		return false
	}
	if d.next() == ']' {
		return d.close(v)
	}
	for i := int32(0); ; i++ {
		d.path[d.depth] = pathStep{kind: indexStep, index: i}
		if !read() {
			return false
		}
		switch d.next() {
		case ',':
			d.pos++
		case ']':
			return d.close(v)
		default:
			return d.fail(badSyntax)
		}
	}
}

func (d *Decoder) readObject(v *Value, object Member, members *[memberCount]Value) bool {
	if !d.open(v, Object) {
		return false
	}
	if d.next() == '}' {
		return d.close(v)
	}
	first := len(d.names)
	for {
		if !d.readMember(v, object, members) {
			return false
		}
		switch d.next() {
		case ',':
			d.pos++
		case '}':
			return d.checkNames(first) && d.close(v)
		default:
			return d.fail(badSyntax)
		}
	}
}

func (d *Decoder) readMember(parent *Value, object Member, members *[memberCount]Value) bool {
	if d.next() != '"' {
		return d.fail(badSyntax)
	}
	var name Value
	if !d.readText(&name) {
		return false
	}
	d.path[d.depth] = pathStep{kind: nameStep, start: name.start, end: name.end}
	if d.next() != ':' {
		return d.fail(badSyntax)
	}
	d.pos++
	key := d.String(&name)
	m := find(object, key)
	if m == unknown {
		parent.flags |= hasExtra
		d.names = append(d.names, key)
		return d.skipValue()
	}
	v := &members[m]
	if v.Kind != Absent {
		return d.fail(duplicateName)
	}
	if !d.readValue(v, m, members) {
		return false
	}
	if v.Kind == Null {
		parent.flags |= hasExtra
	}
	return true
}

// checkNames checks, at the end of an object, that none of its unknown names, names[first:], is there twice.
// Known names were checked as they came.
func (d *Decoder) checkNames(first int) bool {
	const few = 8 // are compared pair by pair; more are sorted, so that the time is not quadratic
	names := d.names[first:]
	if len(names) > few {
		slices.Sort(names)
		for i := 1; i < len(names); i++ {
			if names[i] == names[i-1] {
				return d.fail(duplicateName)
			}
		}
	} else {
		for i := range names {
			if slices.Contains(names[:i], names[i]) {
				return d.fail(duplicateName)
			}
		}
	}
	d.names = d.names[:first]
	return true
}
