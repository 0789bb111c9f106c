package catalog

import (
	"encoding/json"
	"iter"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"
)

// Bounds of a document. They are far above what the providers that we know allow.
const (
	// MaxDocument bounds the bytes of a document.
	MaxDocument = 4 << 20
	// MaxRevision is the greatest revision: the greatest integer that every JSON reader keeps.
	MaxRevision = 1<<53 - 1
	// MaxExternalID bounds the characters of an external id.
	MaxExternalID = 512

	maxInteger   = MaxRevision
	maxText      = 1 << 20 // bytes of a localized text
	maxWord      = 1 << 10 // bytes of any other string
	maxURL       = 2048    // bytes
	maxBuyer     = 64 << 10
	maxLanguages = 200
	maxVariants  = 5000
	maxAvailable = 20000 // a variant may be told of more than once
	maxLines     = 5000
	maxList      = 1000 // media, tags, taxonomy, attributes
)

// absent is the place of a member that is not there, or null.
const absent = -1

// reader takes values out of a tree by the rules of the documents. It keeps the first flaw; after it every method
// returns a zero value, so that a document reads from top to bottom without asking.
type reader struct {
	tree *tree
	flaw *Flaw
}

func (r *reader) fail(n int, rule Rule) {
	if r.flaw == nil {
		r.flaw = &Flaw{Rule: rule, Pointer: r.tree.pointer(n)}
	}
}

func (r *reader) kind(n int) byte { return r.tree.nodes[n].kind }

// get returns the member of that name of an object, or absent.
func (r *reader) get(object int, name string) int {
	if r.flaw != nil || object == absent {
		return absent
	}
	nodes := r.tree.nodes
	for n := object + 1; n < int(nodes[object].after); n = int(nodes[n+1].after) {
		if string(r.tree.said(n)) == name {
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
	if n == absent && r.flaw == nil && object != absent {
		r.flaw = &Flaw{Rule: Missing, Pointer: r.tree.pointer(object) + "/" + name}
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

// each walks the elements of an array until the first flaw.
func (r *reader) each(n, most int) iter.Seq[int] {
	return func(yield func(int) bool) {
		if n == absent || r.flaw != nil {
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
			if r.flaw != nil || !yield(child) {
				return
			}
		}
	}
}

// word returns a string of ordinary length; what is no string breaks the rule given.
func (r *reader) word(n int, otherwise Rule) string { return r.bounded(n, otherwise, maxWord) }

func (r *reader) bounded(n int, otherwise Rule, most int) string {
	if n == absent || r.flaw != nil {
		return ""
	}
	if r.kind(n) != '"' {
		r.fail(n, otherwise)
		return ""
	}
	said := r.tree.said(n)
	if len(said) > most {
		r.fail(n, TooLong)
		return ""
	}
	return string(said)
}

// filled is word for a string that is not empty.
func (r *reader) filled(n int, otherwise Rule) string {
	return r.checked(n, otherwise, func(s string) bool { return s != "" })
}

func (r *reader) checked(n int, otherwise Rule, sound func(string) bool) string {
	s := r.word(n, otherwise)
	if n != absent && r.flaw == nil && !sound(s) {
		r.fail(n, otherwise)
	}
	return s
}

func (r *reader) externalID(n int) string {
	s := r.bounded(n, InvalidExternalID, MaxExternalID*utf8.UTFMax)
	if n != absent && r.flaw == nil && !validExternalID(s) {
		r.fail(n, InvalidExternalID)
	}
	return s
}

func (r *reader) status(n int, allowed ...Status) Status {
	return Status(r.checked(n, InvalidStatus, func(s string) bool { return slices.Contains(allowed, Status(s)) }))
}

func (r *reader) currency(n int) string { return r.checked(n, InvalidCurrency, validCurrency) }

func (r *reader) money(n int) Money {
	n = r.object(n)
	return Money{
		Amount:   r.checked(r.need(n, "amount"), InvalidAmount, validAmount),
		Currency: r.currency(r.need(n, "currency")),
	}
}

func (r *reader) url(n int) string {
	s := r.bounded(n, InvalidURL, maxURL)
	if n != absent && r.flaw == nil && !validURL(s) {
		r.fail(n, InvalidURL)
	}
	return s
}

func (r *reader) time(n int) time.Time {
	s := r.word(n, InvalidTime)
	if n == absent || r.flaw != nil {
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
	if n == absent || r.flaw != nil {
		return 0
	}
	v, ok := parseInteger(r.tree.bytes(n), least, most)
	if !ok {
		r.fail(n, InvalidQuantity)
	}
	return v
}

// number returns a string, or the digits of an integer: providers number orders both ways.
func (r *reader) number(n int) string {
	if n != absent && r.flaw == nil && r.kind(n) == '0' {
		if v, ok := parseInteger(r.tree.bytes(n), 0, maxInteger); ok {
			return strconv.FormatInt(v, 10)
		}
	}
	return r.word(n, InvalidNumber)
}

func (r *reader) boolean(n int) *bool {
	if n == absent || r.flaw != nil {
		return nil
	}
	v := r.kind(n) == 't'
	if !v && r.kind(n) != 'f' {
		r.fail(n, WrongType)
	}
	return &v
}

// localized returns a LocalizedText, nil when it is absent.
func (r *reader) localized(n int) LocalizedText {
	return r.languages(n, func(value int) string { return r.bounded(value, WrongType, maxText) })
}

// localizedURLs is localized for texts that are URLs.
func (r *reader) localizedURLs(n int) LocalizedText { return r.languages(n, r.url) }

func (r *reader) languages(n int, read func(value int) string) LocalizedText {
	if n = r.object(n); n == absent || r.flaw != nil {
		return nil
	}
	text := make(LocalizedText)
	after := int(r.tree.nodes[n].after)
	for key := n + 1; key < after && r.flaw == nil; key = int(r.tree.nodes[key+1].after) {
		if r.kind(key+1) == 'n' {
			continue
		}
		language := string(r.tree.said(key))
		if !validLanguage(language) {
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

// free returns an object of a shape that is not ours in canonical form, nil when it is absent.
func (r *reader) free(n, most int) json.RawMessage {
	if n = r.object(n); n == absent || r.flaw != nil {
		return nil
	}
	out := r.tree.appendCanonical(nil, n)
	if len(out) > most {
		r.fail(n, TooLarge)
	}
	return out
}
