package signal

import (
	"encoding/json"
	"math"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"storefront.internal/shared/ident"
	"storefront.internal/shared/rfc3339"
)

// reader reads a record in the form in which this package writes it: members in their order, no white space
// and no escapes. It fails on anything else, and encoding/json decodes the record then. So it must accept
// only what encoding/json decodes to the same value; FuzzRecord and FuzzDecision compare them.
//
// All texts share one copy of the record. Objects that are kept as they are alias the record itself.
type reader struct {
	record []byte
	text   string // a copy of the record
	pos    int
	failed bool
	object string // the last object that was kept; those of a request's signals are mostly the same
}

func newReader(record []byte) *reader { return &reader{record: record, text: string(record)} }

// accept skips the literal if it comes next.
func (r *reader) accept(literal string) bool {
	if !strings.HasPrefix(r.text[r.pos:], literal) {
		return false
	}
	r.pos += len(literal)
	return true
}

// expect skips the literal, which has to come next.
func (r *reader) expect(literal string) {
	if !r.accept(literal) {
		r.failed = true
	}
}

// done reports whether the whole record was read.
func (r *reader) done() bool { return !r.failed && r.pos == len(r.text) }

// member reads the text of a member that may be missing. The name has its quotes and the colon.
func (r *reader) member(name string) string {
	start := r.pos
	if r.pos > 0 && r.text[r.pos-1] != '{' && !r.accept(",") || !r.accept(name) || !r.accept(`"`) {
		r.pos = start
		return ""
	}
	return r.restOfText()
}

// restOfText reads a text after its first quote.
func (r *reader) restOfText() string {
	ascii := true
	for i := r.pos; i < len(r.text); i++ {
		switch c := r.text[i]; {
		case c == '"':
			text := r.text[r.pos:i]
			r.pos = i + 1
			r.failed = r.failed || !ascii && !utf8.ValidString(text)
			return text
		case c == '\\' || c < ' ':
			r.failed = true
			return ""
		case c >= utf8.RuneSelf:
			ascii = false
		}
	}
	r.failed = true
	return ""
}

// time reads a time in UTC with at most six digits of a fraction.
func (r *reader) time(name string) time.Time {
	const longest = "2006-01-02T15:04:05.999999Z"
	text := r.member(name)
	t, ok := rfc3339.Parse(text)
	r.failed = r.failed || !ok || len(text) > len(longest) || text[len(text)-1] != 'Z'
	return t
}

// number reads an integer from 0 to the greatest of 32 bits.
func (r *reader) number() int32 {
	from, n := r.pos, 0
	for r.pos < len(r.text) && n <= math.MaxInt32 && r.text[r.pos] >= '0' && r.text[r.pos] <= '9' {
		n = n*10 + int(r.text[r.pos]-'0')
		r.pos++
	}
	digits := r.pos - from
	r.failed = r.failed || digits == 0 || digits > 1 && r.text[from] == '0' || n > math.MaxInt32
	return int32(n)
}

// optionalNumber reads a member that may be missing. The name starts with the comma.
func (r *reader) optionalNumber(name string) *int32 {
	if !r.accept(name) {
		return nil
	}
	n := r.number()
	return &n
}

// object reads a member that is kept as it is and may be missing. The name starts with the comma.
func (r *reader) optionalObject(name string) json.RawMessage {
	if !r.accept(name) {
		return nil
	}
	from := r.pos
	if r.object == "" || !r.accept(r.object) {
		r.skipObject()
		r.failed = r.failed || !valid(r.record[from:r.pos])
		r.object = r.text[from:r.pos]
	}
	return json.RawMessage(r.record[from:r.pos:r.pos])
}

// valid reports whether a value is JSON in the sense of encoding/json, or of a stricter one.
func valid(value []byte) bool {
	return jsontext.Value(value).IsValid(jsontext.AllowDuplicateNames(true))
}

// skipObject skips an object up to the brace that closes it. It does not check the grammar.
func (r *reader) skipObject() {
	if r.pos == len(r.text) || r.text[r.pos] != '{' {
		r.failed = true
		return
	}
	depth, quoted := 0, false
	for i := r.pos; i < len(r.text); i++ {
		switch c := r.text[i]; {
		case c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{':
			depth++
		case c == '}':
			depth--
			if depth == 0 {
				r.pos = i + 1
				return
			}
		}
	}
	r.failed = true
}

// optionalVisitor reads a visitor, which may be missing.
func (r *reader) optionalVisitor() *Visitor {
	if !r.accept(`,"visitor":{`) {
		return nil
	}
	v := &Visitor{VisitorID: ident.VisitorID(r.member(`"visitor_id":`))}
	v.SessionID = ident.SessionID(r.member(`"session_id":`))
	r.expect("}")
	return v
}

// readRecord reads a record in the form of AppendRecord or of AppendCompact.
func (r *reader) readRecord() (out Record, ok bool) {
	compact := r.accept(`{"schema":2`)
	if !compact {
		r.expect(`{"schema":1`)
	}
	out.RecordID = r.member(`"record_id":`)
	out.ConnectionID = ident.ConnectionID(r.member(`"connection_id":`))
	out.StoreID = ident.StoreID(r.member(`"store_id":`))
	out.ReceivedAt = r.time(`"received_at":`)
	out.Audit = r.audit()
	r.expect(`,"signals":[`)
	if r.failed {
		return out, false
	}
	out.Signals = make([]Recorded, 0, strings.Count(r.text[r.pos:], `{"index":`))
	for !r.failed && !r.accept("]") {
		if len(out.Signals) > 0 {
			r.expect(",")
		}
		out.Signals = append(out.Signals, Recorded{})
		last := len(out.Signals) - 1
		r.recorded(&out.Signals[last], out.Signals[:last], compact)
	}
	r.expect("}")
	return out, r.done()
}

func (r *reader) audit() (a Audit) {
	r.expect(`,"audit":{`)
	a.IP = r.member(`"ip":`)
	a.UserAgent = r.member(`"user_agent":`)
	a.AcceptLanguage = r.member(`"accept_language":`)
	a.Origin = r.member(`"origin":`)
	a.Referer = r.member(`"referer":`)
	a.Crawler = r.accept(`,"crawler":true`) || r.accept(`"crawler":true`)
	r.expect("}")
	return a
}

func (r *reader) recorded(s *Recorded, earlier []Recorded, compact bool) {
	r.expect(`{"index":`)
	s.Index = int(r.number())
	whole := !compact || !r.accept(`,"like":`)
	if !whole {
		r.failed = !s.resemble(earlier, int(r.number())) || r.failed
	}
	s.ID = ident.SignalID(r.member(`"signal_id":`))
	s.Type = Type(r.member(`"type":`))
	s.OccurredAt = r.time(`"occurred_at":`)
	if whole {
		s.DecisionID = ident.DecisionID(r.member(`"decision_id":`))
	}
	s.ItemID = ident.ItemID(r.member(`"item_id":`))
	s.VariantID = ident.VariantID(r.member(`"variant_id":`))
	s.Position = r.optionalNumber(`,"position":`)
	s.Quantity = r.optionalNumber(`,"quantity":`)
	s.OrderExternalID = r.member(`"order_external_id":`)
	if whole {
		s.Visitor = r.optionalVisitor()
		s.Client = r.optionalObject(`,"client":`)
	}
	r.expect("}")
}

// readDecision reads a Decision in the form of AppendDecision.
func (r *reader) readDecision() (d Decision, ok bool) {
	r.expect(`{"schema":1`)
	d.DecisionID = ident.DecisionID(r.member(`"decision_id":`))
	d.ConnectionID = ident.ConnectionID(r.member(`"connection_id":`))
	d.StoreID = ident.StoreID(r.member(`"store_id":`))
	d.Placement = r.member(`"placement":`)
	d.Source = r.member(`"source":`)
	d.ServedAt = r.time(`"served_at":`)
	r.expect(`,"items":[`)
	d.Items = []DecisionItem{}
	for !r.failed && !r.accept("]") {
		if len(d.Items) > 0 {
			r.expect(",")
		}
		r.expect(`{"position":`)
		item := DecisionItem{Position: int(r.number())}
		item.ItemID = ident.ItemID(r.member(`"item_id":`))
		item.VariantID = ident.VariantID(r.member(`"variant_id":`))
		r.expect("}")
		d.Items = append(d.Items, item)
	}
	d.EngineIDs = r.optionalObject(`,"engine_ids":`)
	d.Visitor = r.optionalVisitor()
	r.expect("}")
	return d, r.done()
}
