package catalog

import (
	"encoding/json"
	"iter"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"
)

// Bounds of a document. They are far above the limits of the known platforms.
const (
	// MaxDocument bounds the bytes of a document.
	MaxDocument = 4 << 20
	// MaxRevision is the greatest revision: the greatest integer that every JSON reader keeps.
	MaxRevision = 1<<53 - 1
	// MaxExternalID bounds the characters of an external id.
	MaxExternalID = 512

	maxNodes     = 1 << 18 // values and names of a document: a product with all of its lists full has fewer
	maxInteger   = MaxRevision
	maxText      = 1 << 20 // bytes of a localized text
	maxWord      = 1 << 10 // bytes of any other string
	maxURL       = 2048    // bytes
	maxBuyer     = 64 << 10
	maxLanguages = 200
	maxVariants  = 5000
	maxAvailable = 20000 // a variant may have more than one availability
	maxLines     = 5000
	maxList      = 1000 // media, tags, taxonomy, attributes
)

// absent is the node index of a member that is missing or null.
const absent = -1

// reader takes values out of a tree by the rules of the documents. It keeps the first violation; after it all
// methods return zero values, so the callers need no error checks.
type reader struct {
	tree      *tree
	violation *Violation
	lent      []LocalizedText // since the last call of recycle
	free      []LocalizedText
}

// newText returns an empty text.
func (r *reader) newText() LocalizedText {
	n := len(r.free)
	if n == 0 {
		r.lent = append(r.lent, make(LocalizedText))
	} else {
		r.lent, r.free = append(r.lent, r.free[n-1]), r.free[:n-1]
	}
	return r.lent[len(r.lent)-1]
}

// recycle allows the texts that were read since the last call to be used again. A map with many languages
// keeps its size, so it is left to the collector.
func (r *reader) recycle() {
	const few = 8
	for _, text := range r.lent {
		if len(text) <= few {
			clear(text)
			r.free = append(r.free, text)
		}
	}
	r.lent = r.lent[:0]
}

// keep lets the caller keep the texts that were read since the last call of recycle.
func (r *reader) keep() { r.lent = r.lent[:0] }

func (r *reader) fail(n int, rule Rule) {
	if r.violation == nil {
		r.violation = &Violation{Rule: rule, Pointer: r.tree.pointer(n)}
	}
}

func (r *reader) kind(n int) byte { return r.tree.nodes[n].kind }

// get returns the member of an object with that name, or absent.
func (r *reader) get(object int, name string) int {
	if r.violation != nil || object == absent {
		return absent
	}
	nodes := r.tree.nodes
	for n := object + 1; n < int(nodes[object].after); n = int(nodes[n+1].after) {
		if string(r.tree.string(n)) == name {
			if nodes[n+1].kind == 'n' {
				return absent
			}
			return n + 1
		}
	}
	return absent
}

// need is get for a required member.
func (r *reader) need(object int, name string) int {
	n := r.get(object, name)
	if n == absent && r.violation == nil && object != absent {
		r.violation = &Violation{Rule: Missing, Pointer: r.tree.pointer(object) + "/" + name}
	}
	return n
}

// object returns n when it is an object.
func (r *reader) object(n int) int {
	if n == absent || r.kind(n) == '{' {
		return n
	}
	r.fail(n, WrongType)
	return absent
}

// each iterates over the elements of an array until the first violation.
func (r *reader) each(n, most int) iter.Seq[int] {
	return func(yield func(int) bool) {
		if n == absent || r.violation != nil {
			return
		}
		if r.kind(n) != '[' {
			r.fail(n, WrongType)
			return
		}
		count := 0
		for child := n + 1; child < int(r.tree.nodes[n].after); child = int(r.tree.nodes[child].after) {
			if count++; count > most {
				r.fail(n, TooMany)
			}
			if r.violation != nil || !yield(child) {
				return
			}
		}
	}
}

// shortText returns a string of at most maxWord bytes. A value of another type violates the rule otherwise.
func (r *reader) shortText(n int, otherwise Rule) string { return r.bounded(n, otherwise, maxWord) }

func (r *reader) bounded(n int, otherwise Rule, most int) string {
	if n == absent || r.violation != nil {
		return ""
	}
	if r.kind(n) != '"' {
		r.fail(n, otherwise)
		return ""
	}
	text := r.tree.string(n)
	if len(text) > most {
		r.fail(n, TooLong)
		return ""
	}
	return string(text)
}

// nonEmpty is shortText for a string that must not be empty.
func (r *reader) nonEmpty(n int, otherwise Rule) string {
	return r.checked(n, otherwise, func(s string) bool { return s != "" })
}

func (r *reader) checked(n int, otherwise Rule, valid func(string) bool) string {
	return r.checkedBounded(n, otherwise, maxWord, valid)
}

func (r *reader) checkedBounded(n int, otherwise Rule, most int, valid func(string) bool) string {
	s := r.bounded(n, otherwise, most)
	if n != absent && r.violation == nil && !valid(s) {
		r.fail(n, otherwise)
	}
	return s
}

func (r *reader) externalID(n int) string {
	return r.checkedBounded(n, InvalidExternalID, MaxExternalID*utf8.UTFMax, validExternalID)
}

func (r *reader) status(n int, allowed ...Status) Status {
	return Status(r.checked(n, InvalidStatus,
		func(s string) bool { return slices.Contains(allowed, Status(s)) }))
}

func (r *reader) currency(n int) string { return r.checked(n, InvalidCurrency, validCurrency) }

func (r *reader) money(n int) Money {
	n = r.object(n)
	return Money{
		Amount:   r.checked(r.need(n, "amount"), InvalidAmount, validAmount),
		Currency: r.currency(r.need(n, "currency")),
	}
}

func (r *reader) url(n int) string { return r.checkedBounded(n, InvalidURL, maxURL, validURL) }

func (r *reader) time(n int) time.Time {
	s := r.shortText(n, InvalidTime)
	if n == absent || r.violation != nil {
		return time.Time{}
	}
	t, ok := parseTime(s)
	if !ok {
		r.fail(n, InvalidTime)
	}
	return t
}

// integer returns a number without fraction and exponent between the bounds.
func (r *reader) integer(n int, least, most int64) int64 {
	if n == absent || r.violation != nil {
		return 0
	}
	v, ok := parseInteger(r.tree.bytes(n), least, most)
	if !ok {
		r.fail(n, InvalidQuantity)
	}
	return v
}

// number returns a string, or the digits of an integer: platforms number orders both ways.
func (r *reader) number(n int) string {
	if n != absent && r.violation == nil && r.kind(n) == '0' {
		if v, ok := parseInteger(r.tree.bytes(n), 0, maxInteger); ok {
			return strconv.FormatInt(v, 10)
		}
	}
	return r.shortText(n, InvalidNumber)
}

func (r *reader) boolean(n int) *bool {
	if n == absent || r.violation != nil {
		return nil
	}
	v := r.kind(n) == 't'
	if !v && r.kind(n) != 'f' {
		r.fail(n, WrongType)
	}
	return &v
}

// localized returns a LocalizedText, nil when absent.
func (r *reader) localized(n int) LocalizedText {
	return r.languages(n, func(value int) string { return r.bounded(value, WrongType, maxText) })
}

// localizedURLs is localized for texts that are URLs.
func (r *reader) localizedURLs(n int) LocalizedText { return r.languages(n, r.url) }

func (r *reader) languages(n int, read func(value int) string) LocalizedText {
	if n = r.object(n); n == absent || r.violation != nil {
		return nil
	}
	text := r.newText()
	after := int(r.tree.nodes[n].after)
	for key := n + 1; key < after && r.violation == nil; key = int(r.tree.nodes[key+1].after) {
		if r.kind(key+1) == 'n' {
			continue
		}
		language := string(r.tree.string(key))
		if !ValidLanguage(language) {
			r.fail(key+1, InvalidLanguage)
			break
		}
		if text[language] = read(key + 1); len(text) > maxLanguages {
			r.fail(n, TooMany)
		}
	}
	if len(text) == 0 {
		r.fail(n, TooFew)
	}
	return text
}

// freeForm returns an object of any shape in canonical form, nil when absent.
func (r *reader) freeForm(n, most int) json.RawMessage {
	if n = r.object(n); n == absent || r.violation != nil {
		return nil
	}
	out := r.tree.appendCanonical(nil, n)
	if len(out) > most {
		r.fail(n, TooLarge)
	}
	return out
}
