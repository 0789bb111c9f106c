package catalog

import (
	"bytes"
	"hash/maphash"
)

// names finds a name that an object gives twice. The names of small objects, of all that are open, lie on one stack and
// are compared one by one; a large object has a table of the places of its names in the text, so that an object made of
// millions of them costs a few bytes for each.
type names struct {
	text  []byte
	stack []nameAt
}

// nameAt is a name and the place of its opening quote.
type nameAt struct {
	name []byte
	at   int
}

// seen is what names knows of one open object.
type seen struct {
	base  int
	table []uint32 // places plus one, by hash; its length is a power of two
	count int
	seed  maphash.Seed
}

func (n *names) open() seen { return seen{base: len(n.stack)} }

func (n *names) close(s *seen) { n.stack = n.stack[:s.base] }

// add reports whether the object did not have the name yet.
func (n *names) add(s *seen, name []byte, at int) bool {
	const few = 16
	if s.table != nil {
		return n.insert(s, name, at)
	}
	for _, other := range n.stack[s.base:] {
		if bytes.Equal(other.name, name) {
			return false
		}
	}
	n.stack = append(n.stack, nameAt{name, at})
	if len(n.stack)-s.base > few {
		s.seed = maphash.MakeSeed()
		s.table = make([]uint32, 4*few)
		for _, other := range n.stack[s.base:] {
			n.insert(s, other.name, other.at)
		}
		n.close(s)
	}
	return true
}

func (n *names) insert(s *seen, name []byte, at int) bool {
	if 4*s.count >= 3*len(s.table) {
		n.grow(s)
	}
	mask := uint64(len(s.table) - 1)
	for slot := maphash.Bytes(s.seed, name) & mask; ; slot = (slot + 1) & mask {
		switch place := s.table[slot]; {
		case place == 0:
			s.table[slot] = uint32(at + 1)
			s.count++
			return true
		case bytes.Equal(n.read(int(place-1)), name):
			return false
		}
	}
}

func (n *names) grow(s *seen) {
	old := s.table
	s.table, s.count = make([]uint32, 2*len(old)), 0
	for _, place := range old {
		if place != 0 {
			n.insert(s, n.read(int(place-1)), int(place-1))
		}
	}
}

// read returns the name whose opening quote is at the place.
func (n *names) read(at int) []byte {
	s := scanner{b: n.text, i: at}
	escaped, _ := s.text()
	return unquote(n.text[at:s.i], escaped)
}
