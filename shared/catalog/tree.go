package catalog

import "github.com/go-json-experiment/json/jsontext"

// node is one value or one member name of a tree. The nodes of a container follow it; in an object each name
// is followed by its value.
type node struct {
	kind       byte // of jsontext: the first byte of the text, or 0 for every number
	escaped    bool // of a string
	start, end int32
	after      int32 // the next node after this one's subtree
}

// tree holds the values of a text in a flat list, in the order of the text.
type tree struct {
	text  []byte
	nodes []node
	open  [maxDepth]int
}

func (t *tree) bytes(n int) []byte { return t.text[t.nodes[n].start:t.nodes[n].end] }

// string returns the text of a string.
func (t *tree) string(n int) []byte {
	if !t.nodes[n].escaped {
		return t.text[t.nodes[n].start+1 : t.nodes[n].end-1]
	}
	text, _ := unquote(t.bytes(n))
	return text
}

// add implements the callback of walk; open holds the containers that are not closed yet.
func (t *tree) add(n node, depth int) bool {
	if n.kind == '}' || n.kind == ']' {
		opening := &t.nodes[t.open[depth-1]]
		opening.end, opening.after = n.end, int32(len(t.nodes))
		return true
	}
	if len(t.nodes) == maxNodes {
		return false
	}
	if n.kind == '{' || n.kind == '[' {
		t.open[depth] = len(t.nodes)
	}
	n.after = int32(len(t.nodes) + 1)
	t.nodes = append(t.nodes, n)
	return true
}

// pointer returns the JSON Pointer from the root to a value, up to a name that is not printable. It reads the
// text again, since only violations need it.
func (t *tree) pointer(n int) string {
	var dec jsontext.Decoder
	decode(&dec, t.text)
	for dec.InputOffset() <= int64(t.nodes[n].start) {
		if _, err := dec.ReadToken(); err != nil {
			break
		}
	}
	return printable(dec.StackPointer())
}
