package catalog

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

const (
	maxDepth    = 32
	maxExponent = 400
)

// parse returns the tree of the text, or its first violation. The tree takes over the nodes.
func parse(dec *jsontext.Decoder, text []byte, nodes []node) (*tree, *Violation) {
	t := &tree{text: text, nodes: slices.Grow(nodes[:0], min(mostNodes(text), maxNodes))}
	return t, walk(dec, text, t.add)
}

// mostNodes returns as many nodes as the text can have: each but the first is behind one of these characters.
func mostNodes(text []byte) int {
	n := 1
	for _, c := range []byte("{[,:") {
		n += bytes.Count(text, []byte{c})
	}
	return n
}

// validate returns the first violation of the text without building a tree.
func validate(dec *jsontext.Decoder, text []byte) *Violation {
	return walk(dec, text, func(node, int) bool { return true })
}

// walk reads the text and returns its first violation of the grammar or of the rules for depth, names,
// escapes and exponents. It passes each scalar, name, opening and closing to add; depth counts the containers
// around it. When add returns false, the text is too large.
func walk(dec *jsontext.Decoder, text []byte, add func(n node, depth int) bool) *Violation {
	if !utf8.Valid(text) {
		return &Violation{Rule: InvalidJSON}
	}
	decode(dec, text, jsontext.AllowDuplicateNames(false))
	for first := true; first || dec.StackDepth() > 0; first = false {
		if violation := step(dec, add); violation != nil {
			return violation
		}
	}
	if _, err := dec.ReadToken(); !errors.Is(err, io.EOF) {
		return &Violation{Rule: InvalidJSON}
	}
	return nil
}

// decode makes the decoder read the text, in place. The caller has checked that the text is UTF-8; with
// AllowInvalidUTF8 the decoder takes escaped lone surrogates too, for which the package has a rule of its
// own.
func decode(dec *jsontext.Decoder, text []byte, opts ...jsontext.Options) {
	dec.Reset(bytes.NewBuffer(text), append(opts, jsontext.AllowInvalidUTF8(true))...)
}

// step reads one of them.
func step(dec *jsontext.Decoder, add func(n node, depth int) bool) *Violation {
	depth := dec.StackDepth()
	n := node{kind: byte(dec.PeekKind())}
	switch n.kind {
	case '{', '[', '}', ']':
		if _, err := dec.ReadToken(); err != nil {
			return violationOf(err)
		}
		n.end = int32(dec.InputOffset())
		n.start = n.end - 1
		if depth == maxDepth && (n.kind == '{' || n.kind == '[') {
			return &Violation{TooDeep, printable(dec.StackPointer())}
		}
	default:
		container, count := dec.StackIndex(depth)
		value, err := dec.ReadValue()
		if err != nil {
			return violationOf(err)
		}
		n.end = int32(dec.InputOffset())
		n.start = n.end - int32(len(value))
		n.escaped = n.kind == '"' && bytes.IndexByte(value, '\\') >= 0
		if rule := scalarRule(n, value); rule != "" {
			pointer := dec.StackPointer()
			// a malformed name cannot be part of a pointer
			if isName := container == '{' && count%2 == 0; isName {
				pointer = pointer.Parent()
			}
			return &Violation{rule, printable(pointer)}
		}
	}
	if !add(n, depth) {
		return &Violation{Rule: TooLarge}
	}
	return nil
}

// violationOf translates an error of the decoder.
func violationOf(err error) *Violation {
	var syntax *jsontext.SyntacticError
	if errors.As(err, &syntax) && errors.Is(err, jsontext.ErrDuplicateName) {
		return &Violation{DuplicateName, printable(syntax.JSONPointer)}
	}
	return &Violation{Rule: InvalidJSON}
}

// scalarRule returns the rule that a scalar violates, or "".
func scalarRule(n node, value []byte) Rule {
	switch {
	case n.kind == '0' && exponentHuge(value):
		return HugeExponent
	case n.escaped && bytes.Contains(value, []byte(`\u`)): // no other escape can violate a rule
		_, rule := unquote(value)
		return rule
	}
	return ""
}

// exponentHuge reports whether a number has an exponent beyond the bound.
func exponentHuge(number []byte) bool {
	i := bytes.IndexAny(number, "eE")
	if i < 0 {
		return false
	}
	exponent := 0
	for _, digit := range number[i+1:] {
		if digit >= '0' && exponent <= maxExponent {
			exponent = exponent*10 + int(digit-'0')
		}
	}
	return exponent > maxExponent
}

// unquote returns the text of a JSON string, or the rule that one of its escapes violates.
func unquote(quoted []byte) ([]byte, Rule) {
	if inner := quoted[1 : len(quoted)-1]; bytes.IndexByte(inner, '\\') < 0 {
		return inner, ""
	}
	text, err := jsontext.AppendUnquote(nil, quoted)
	nul, replaced := bytes.IndexByte(text, 0), bytes.Index(text, []byte("\ufffd"))
	switch {
	case err != nil && (nul < 0 || replaced < nul):
		return nil, LoneSurrogate
	case nul >= 0:
		return nil, NULCharacter
	}
	return text, ""
}

// maxNesting is just below the nesting that jsontext refuses (10,000).
const maxNesting = 9_990

// clipDepth returns a copy of the text in which spaces replace what lies in more than maxNesting containers,
// at the same offsets; nil when nothing does. So one element with extreme nesting violates TooDeep by itself
// and does not spoil the batch that it came with.
func clipDepth(text []byte) []byte {
	var clipped []byte
	depth, quoted := 0, false
	for i := 0; i < len(text); i++ {
		first, inside := i, depth > maxNesting
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '[', c == '{':
			depth++
		case c == ']', c == '}':
			depth--
			inside = depth > maxNesting
		}
		if !inside {
			continue
		}
		if clipped == nil {
			clipped = bytes.Clone(text)
		}
		for j := first; j <= min(i, len(text)-1); j++ {
			clipped[j] = ' '
		}
	}
	return clipped
}
