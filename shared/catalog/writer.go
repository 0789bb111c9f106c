package catalog

import (
	"bytes"
	"maps"
	"slices"
	"strconv"
	"time"
)

// writer appends the canonical form of JSON: members in the order of the calls, maps by key, no white space, absent values
// left out.
type writer struct{ b []byte }

func newWriter() *writer { return &writer{make([]byte, 0, 2048)} }

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
	w.comma()
	w.b = appendQuoted(w.b, s)
}

func (w *writer) raw(b []byte) {
	w.comma()
	w.b = append(w.b, b...)
}

// word writes a member, unless it is empty.
func (w *writer) word(name, s string) {
	if s != "" {
		w.name(name)
		w.text(s)
	}
}

func (w *writer) integer(name string, v int64) {
	w.name(name)
	w.b = strconv.AppendInt(w.b, v, 10)
}

// time writes the instant as the service writes it everywhere: UTC, microseconds, Z.
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
	w.word("amount", m.Amount)
	w.word("currency", m.Currency)
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

// appendCanonical appends a value of any shape: members by name, null members left out, numbers as they were written.
func (t *tree) appendCanonical(dst []byte, n int) []byte {
	w := writer{dst}
	t.write(&w, n)
	return w.b
}

func (t *tree) write(w *writer, n int) {
	after := int(t.nodes[n].after)
	switch t.nodes[n].kind {
	case '{':
		w.open('{')
		for _, name := range t.sortedNames(n) {
			w.name(string(t.said(name)))
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
		w.text(string(t.said(n)))
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
	slices.SortFunc(found, func(a, b int) int { return bytes.Compare(t.said(a), t.said(b)) })
	return found
}
