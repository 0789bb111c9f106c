package privacy

import (
	"bytes"
	"errors"
	"io"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// Matcher finds the bodies that contain the data of a customer, or that are about one of some orders. It
// compares decoded JSON strings, whatever their case and escapes. A phone number or identification matches a
// whole string. An e-mail address also matches within a text, where no character beside it could belong to
// the address: ana@shop.example is not in mariana@shop.example.
type Matcher struct {
	emails     []string            // in lower case, as all of these
	whole      []string            // whole strings
	customerID string              // "id" in our documents of orders, in which no other member has this name
	orders     map[string]struct{} // "id" in webhooks
}

// minPatternLength is the shortest pattern: shorter ones occur in the data of others.
const minPatternLength = 6

// newMatcher returns a Matcher for the data of a customer.
func newMatcher(c customer) *Matcher {
	m := &Matcher{customerID: strings.ToLower(c.ID), orders: map[string]struct{}{}}
	if email := lowerTrimmed(c.Email); len(email) >= minPatternLength && strings.Contains(email, "@") {
		m.emails = append(m.emails, email)
	}
	for _, number := range []string{c.Phone, c.Identification} {
		if number = lowerTrimmed(number); len(number) >= minPatternLength {
			m.whole = append(m.whole, number)
		}
	}
	return m
}

func lowerTrimmed(s string) string { return strings.ToLower(strings.TrimSpace(s)) }

// addOrders makes webhooks about orders match.
func (m *Matcher) addOrders(ids []string) {
	for _, id := range ids {
		m.orders[strings.ToLower(id)] = struct{}{}
	}
}

// empty reports whether nothing can match.
func (m *Matcher) empty() bool {
	return len(m.emails) == 0 && len(m.whole) == 0 && m.customerID == "" && len(m.orders) == 0
}

// MatchRaw reports whether the body of a webhook, or what a provider returned for an order, matches.
func (m *Matcher) MatchRaw(body []byte) bool {
	return m.match(body, func(id string) bool {
		_, found := m.orders[id]
		return found
	})
}

// MatchDocument reports whether our document of an order matches.
func (m *Matcher) MatchDocument(body []byte) bool {
	return m.match(body, func(id string) bool { return m.customerID != "" && id == m.customerID })
}

// match reads one or several JSON values. What is not JSON is searched as one text.
func (m *Matcher) match(body []byte, matchID func(string) bool) bool {
	d := jsontext.NewDecoder(bytes.NewReader(body), jsontext.AllowInvalidUTF8(true),
		jsontext.AllowDuplicateNames(true))
	isID := false // the value that follows is that of a member called id
	for {
		token, err := d.ReadToken()
		if errors.Is(err, io.EOF) {
			return false
		}
		if err != nil {
			return m.matchText(strings.ToLower(string(body)))
		}
		kind := token.Kind()
		if kind != '"' && kind != '0' {
			isID = false
			continue
		}
		text := strings.ToLower(token.String())
		if isID && matchID(text) || kind == '"' && m.matchText(text) {
			return true
		}
		parent, length := d.StackIndex(d.StackDepth())
		isName := parent == '{' && length%2 == 1
		isID = isName && text == "id"
	}
}

func (m *Matcher) matchText(text string) bool {
	for _, want := range m.whole {
		if strings.TrimSpace(text) == want {
			return true
		}
	}
	if len(m.emails) == 0 {
		return false
	}
	decoded := text
	if strings.Contains(text, "%40") { // the address in a URL
		if unescaped, err := url.QueryUnescape(text); err == nil {
			decoded = strings.ToLower(unescaped)
		}
	}
	for _, email := range m.emails {
		if containsAddress(text, email) || decoded != text && containsAddress(decoded, email) {
			return true
		}
	}
	return false
}

// containsAddress reports whether a text contains an e-mail address that is not a part of a longer one.
func containsAddress(text, email string) bool {
	for from := 0; ; {
		at := strings.Index(text[from:], email)
		if at < 0 {
			return false
		}
		start := from + at
		if beginsAddress(text[:start]) && endsAddress(text[start+len(email):]) {
			return true
		}
		from = start + 1
	}
}

// beginsAddress reports whether an address may begin behind a text.
func beginsAddress(before string) bool {
	r, _ := utf8.DecodeLastRuneInString(before)
	return before == "" || !isAlphanumeric(r) && !strings.ContainsRune("._%+-", r)
}

// endsAddress reports whether an address may end before a text. A dot that ends a sentence is none of a
// domain.
func endsAddress(behind string) bool {
	r, size := utf8.DecodeRuneInString(behind)
	if r == '.' {
		next, _ := utf8.DecodeRuneInString(behind[size:])
		return !isAlphanumeric(next)
	}
	return behind == "" || !isAlphanumeric(r) && r != '-'
}

// isAlphanumeric also counts letters like ñ, which are parts of words and of addresses. Writing systems that
// put no space before an address do not use them.
func isAlphanumeric(r rune) bool {
	isASCII := r >= 'a' && r <= 'z' || r >= '0' && r <= '9'
	return isASCII || r > unicode.MaxASCII && unicode.Is(unicode.Latin, r)
}

// maxOrderHints is how many orders are searched one by one in the database; beyond it, every body with an id
// is read.
const maxOrderHints = 100

// Hints returns texts of which each body that MatchRaw accepts contains one, in its bytes with A to Z in
// lower case. The database uses them to skip bodies; other bodies contain them too.
func (m *Matcher) Hints() (hints []string) {
	for _, email := range m.emails {
		run := longestPlainRun(email)
		hints = append(hints, run)
		if strings.Contains(run, "@") {
			hints = append(hints, strings.ReplaceAll(run, "@", "%40"))
		}
	}
	for _, text := range m.whole {
		hints = append(hints, longestPlainRun(text))
	}
	if len(m.orders) > maxOrderHints {
		return append(hints, idMember)
	}
	for id := range m.orders {
		if longestPlainRun(id) != id {
			return append(hints, idMember)
		}
		for _, separator := range []string{":", ": ", `:"`, `: "`} {
			hints = append(hints, idMember+separator+id)
		}
	}
	return hints
}

const idMember = `"id"`

// DocumentHints are the hints of MatchDocument.
func (m *Matcher) DocumentHints() []string {
	hints := m.Hints()
	if m.customerID != "" {
		hints = append(hints, idMember+`:"`)
	}
	return hints
}

// longestPlainRun returns the longest part of a text that every JSON encoder writes as it is: letters beyond
// ASCII, slashes and signs of HTML may be escaped. It may be empty, which every body contains.
func longestPlainRun(text string) (longest string) {
	mayBeEscaped := func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9') && !strings.ContainsRune("@._- ", r)
	}
	for run := range strings.FieldsFuncSeq(text, mayBeEscaped) {
		if len(run) > len(longest) {
			longest = run
		}
	}
	return longest
}
