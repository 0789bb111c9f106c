package catalog

import (
	"strconv"
	"unicode/utf8"
)

const (
	maxDepth    = 32
	maxExponent = 400
)

// parser reads a text strictly: beside the grammar, the rules for depth, names, escapes and exponents hold.
type parser struct {
	scanner
	keep  bool   // build nodes; without, the text is judged only
	nodes []node // of the tree
	names names
}

// parse returns the tree of the text, or its first flaw.
func parse(text []byte) (*tree, *Flaw) {
	p := parser{scanner: scanner{b: text}, names: names{text: text}, keep: true, nodes: make([]node, 0, 16+len(text)/16)}
	if flaw := p.whole(); flaw != nil {
		return nil, flaw
	}
	return &tree{text: text, nodes: p.nodes}, nil
}

// judge returns the first flaw of the text without building anything.
func judge(text []byte) *Flaw {
	p := parser{scanner: scanner{b: text}, names: names{text: text}}
	return p.whole()
}

func (p *parser) whole() *Flaw {
	if !utf8.Valid(p.b) {
		return &Flaw{Rule: InvalidJSON}
	}
	if flaw := p.any(0); flaw != nil {
		return flaw
	}
	if p.space(); p.i != len(p.b) {
		return &Flaw{Rule: InvalidJSON}
	}
	return nil
}

// any takes a value that lies in depth containers.
func (p *parser) any(depth int) *Flaw {
	c := p.peek()
	if c != '{' && c != '[' {
		return p.leaf(c)
	}
	if depth == maxDepth {
		return &Flaw{Rule: TooDeep}
	}
	n := len(p.nodes)
	p.add(node{kind: c, start: int32(p.i)})
	p.i++
	var flaw *Flaw
	if c == '{' {
		flaw = p.members(depth + 1)
	} else {
		flaw = p.elements(depth + 1)
	}
	if flaw == nil && p.keep {
		p.nodes[n].end, p.nodes[n].after = int32(p.i), int32(len(p.nodes))
	}
	return flaw
}

func (p *parser) elements(depth int) *Flaw {
	if p.next(']') {
		return nil
	}
	for index := 0; ; index++ {
		if flaw := p.any(depth); flaw != nil {
			return flaw.under(strconv.AppendInt(nil, int64(index), 10))
		}
		if p.next(']') {
			return nil
		}
		if !p.next(',') {
			return &Flaw{Rule: InvalidJSON}
		}
	}
}

func (p *parser) members(depth int) *Flaw {
	if p.next('}') {
		return nil
	}
	seen := p.names.open()
	defer p.names.close(&seen)
	for {
		p.space()
		start := p.i
		quoted, escaped, ok := p.member()
		if !ok {
			return &Flaw{Rule: InvalidJSON}
		}
		if rule := escapesOf(quoted, escaped); rule != "" {
			return &Flaw{Rule: rule} // the name cannot be part of a pointer
		}
		name := unquote(quoted, escaped)
		if !p.names.add(&seen, name, start) {
			return (&Flaw{Rule: DuplicateName}).under(name)
		}
		p.add(node{kind: '"', escaped: escaped, start: int32(start), end: int32(start + len(quoted)), after: int32(len(p.nodes) + 1)})
		if flaw := p.any(depth); flaw != nil {
			return flaw.under(name)
		}
		if p.next('}') {
			return nil
		}
		if !p.next(',') {
			return &Flaw{Rule: InvalidJSON}
		}
	}
}

// leaf takes a scalar that starts with c.
func (p *parser) leaf(c byte) *Flaw {
	start := p.i
	escaped, ok := p.text()
	if c != '"' {
		ok = p.scalar()
	}
	if !ok {
		return &Flaw{Rule: InvalidJSON}
	}
	text := p.b[start:p.i]
	if c == '-' || c >= '0' && c <= '9' {
		c = '0'
		if exponentHuge(text) {
			return &Flaw{Rule: HugeExponent}
		}
	}
	if rule := escapesOf(text, escaped); rule != "" {
		return &Flaw{Rule: rule}
	}
	p.add(node{kind: c, escaped: escaped, start: int32(start), end: int32(p.i), after: int32(len(p.nodes) + 1)})
	return nil
}

func (p *parser) add(n node) {
	if p.keep {
		p.nodes = append(p.nodes, n)
	}
}

func escapesOf(quoted []byte, escaped bool) Rule {
	if !escaped {
		return ""
	}
	return escapesBroken(quoted)
}

// exponentHuge reports whether the exponent of a number, if any, is beyond the bound.
func exponentHuge(number []byte) bool {
	for i, c := range number {
		if c|0x20 != 'e' {
			continue
		}
		exponent := 0
		for _, digit := range number[i+1:] {
			if digit >= '0' && exponent <= maxExponent {
				exponent = exponent*10 + int(digit-'0')
			}
		}
		return exponent > maxExponent
	}
	return false
}
