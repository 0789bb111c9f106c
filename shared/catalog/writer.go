package catalog

import (
	"bytes"
	"maps"
	"slices"
	"strconv"
	"time"
)

// writer appends canonical JSON: members in the order of the calls, maps by key, no white space, absent
// values left out.
type writer struct {
	b []byte

	// Texts that do not fit into most bytes are left out, and cut says so. 0: no bound.
	most int
	cut  bool

	taxonomy span // of an item that was written
}

// span is a part of the written bytes.
type span struct{ from, to int }

func newWriter() *writer { return &writer{b: make([]byte, 0, 2048)} }

// fits reports whether n more bytes may be written.
func (w *writer) fits(n int) bool {
	w.cut = w.cut || w.most > 0 && len(w.b)+n > w.most
	return !w.cut
}

func (w *writer) open(c byte) {
	w.comma()
	w.b = append(w.b, c)
}

func (w *writer) close(c byte) { w.b = append(w.b, c) }

// comma separates a value from the one before it in its container.
func (w *writer) comma() {
	if n := len(w.b); n > 0 && w.b[n-1] != '{' && w.b[n-1] != '[' && w.b[n-1] != ':' {
		w.b = append(w.b, ',')
	}
}

func (w *writer) name(name string) {
	w.comma()
	w.b = append(appendQuoted(w.b, name), ':')
}

func (w *writer) text(s string) {
	if !w.fits(len(s)) {
		return
	}
	w.comma()
	w.b = appendQuoted(w.b, s)
}

func (w *writer) raw(b []byte) {
	if !w.fits(len(b)) {
		return
	}
	w.comma()
	w.b = append(w.b, b...)
}

// shortText writes a member, unless it is empty.
func (w *writer) textMember(name, s string) {
	if s != "" {
		w.name(name)
		w.text(s)
	}
}

func (w *writer) integer(name string, v int64) {
	w.name(name)
	w.b = strconv.AppendInt(w.b, v, 10)
}

// time writes an instant in UTC with microseconds and Z.
func (w *writer) time(name string, t time.Time) {
	w.name(name)
	w.b = append(w.b, '"')
	w.b = t.UTC().AppendFormat(w.b, "2006-01-02T15:04:05.999999Z")
	w.b = append(w.b, '"')
}

func (w *writer) money(name string, m *Money) {
	if m == nil {
		return
	}
	w.name(name)
	w.open('{')
	w.textMember("amount", m.Amount)
	w.textMember("currency", m.Currency)
	w.close('}')
}

func (w *writer) localized(name string, text LocalizedText) {
	if len(text) == 0 {
		return
	}
	w.name(name)
	w.open('{')
	languages := slices.AppendSeq(make([]string, 0, 8), maps.Keys(text))
	slices.Sort(languages)
	for _, language := range languages {
		w.name(language)
		w.text(text[language])
	}
	w.close('}')
}

// appendCanonical appends a value of any shape: members by name, null members left out, numbers as they were
// written.
func (t *tree) appendCanonical(dst []byte, n int) []byte {
	w := writer{b: dst}
	t.write(&w, n)
	return w.b
}

func (t *tree) write(w *writer, n int) {
	after := int(t.nodes[n].after)
	switch t.nodes[n].kind {
	case '{':
		w.open('{')
		for _, name := range t.sortedNames(n) {
			w.name(string(t.string(name)))
			t.write(w, name+1)
		}
		w.close('}')
	case '[':
		w.open('[')
		for child := n + 1; child < after; child = int(t.nodes[child].after) {
			t.write(w, child)
		}
		w.close(']')
	case '"':
		w.text(string(t.string(n)))
	default:
		w.raw(t.bytes(n))
	}
}

func (t *tree) sortedNames(object int) []int {
	var found []int
	for n := object + 1; n < int(t.nodes[object].after); n = int(t.nodes[n+1].after) {
		if t.nodes[n+1].kind != 'n' {
			found = append(found, n)
		}
	}
	slices.SortFunc(found, func(a, b int) int { return bytes.Compare(t.string(a), t.string(b)) })
	return found
}
