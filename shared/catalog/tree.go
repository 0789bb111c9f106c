package catalog

import "strconv"

// node is one value, or one member's name, of a tree. The nodes of a container follow it up to its end; in an object
// each name is followed by its value.
type node struct {
	kind       byte // the first byte of the text, '0' for every number
	escaped    bool // of a string
	start, end int32
	after      int32 // the node behind this one's subtree
}

// tree is the strict reading of a text: flat, in the order of the text.
type tree struct {
	text  []byte
	nodes []node
}

func (t *tree) bytes(n int) []byte { return t.text[t.nodes[n].start:t.nodes[n].end] }

// said returns what a string says.
func (t *tree) said(n int) []byte { return unquote(t.bytes(n), t.nodes[n].escaped) }

// pointer returns the JSON Pointer from the root to a value; it stops above a name that is not fit to print.
func (t *tree) pointer(target int) string {
	path := ""
	for at := 0; at != target; {
		child, token, ok := t.childTowards(at, target)
		if !ok {
			break
		}
		path += token
		at = child
	}
	return path
}

func (t *tree) childTowards(at, target int) (child int, token string, ok bool) {
	object, index := t.nodes[at].kind == '{', 0
	for child = at + 1; ; index++ {
		name := child
		if object {
			child++
		}
		if after := int(t.nodes[child].after); target >= after {
			child = after
			continue
		}
		if !object {
			return child, "/" + strconv.Itoa(index), true
		}
		token, ok = pointerToken(t.said(name))
		return child, token, ok
	}
}
