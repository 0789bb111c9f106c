package catalog

import (
	"bytes"
	"log/slog"
	"time"
	"unicode/utf8"
)

// Observation is one element of operation 4 as read. Exactly one of three holds: it is Rejected and cannot be archived;
// it is Quarantined and archived; or it is sound, with Content unless it is a delete.
//
// The slices alias the element that was read. What an observation holds may be buyer data, so it prints as a placeholder.
type Observation struct {
	ExternalID      string
	Entity          Entity
	Revision        int64     // 1 to MaxRevision
	Operation       Operation // empty when it is no operation, which is a flaw
	SourceUpdatedAt time.Time // UTC, microseconds; zero when absent

	Raw      []byte // the value of raw exactly as sent, a null too; nil when there is none
	Document []byte // the value of document exactly as sent; nil when there is none or null

	Content     Document  // the document as read; Complete turns it into the canonical bytes
	Rejected    Rejection // empty unless rejected
	Quarantined *Flaw     // nil unless quarantined
}

// String hides the content.
func (o Observation) String() string { return "[observation of " + string(o.Entity) + "]" }

// GoString hides the content.
func (o Observation) GoString() string { return o.String() }

// LogValue hides the content.
func (o Observation) LogValue() slog.Value {
	return slog.GroupValue(slog.String("entity", string(o.Entity)), slog.String("operation", string(o.Operation)),
		slog.Int64("revision", o.Revision))
}

// ReadObservation reads one element (spec.md "Observation"; contract, section 3 "Observation"), be it fresh from Split
// or out of a quarantine. It keeps nothing between elements.
func ReadObservation(element []byte) Observation {
	m, ok := readMembers(element)
	if !ok {
		return Observation{Rejected: InvalidObservation}
	}
	o := Observation{Raw: m.raw.text, Operation: Upsert}
	if m.document.given() {
		o.Document = m.document.text
	}
	if o.Rejected = o.readIdentity(&m); o.Rejected != "" {
		return o
	}
	o.Quarantined = o.readRest(&m)
	if o.Quarantined != nil {
		o.Content = nil
		if o.Entity == Order {
			o.Quarantined.withoutBuyerData()
		}
	}
	return o
}

// readIdentity reads what an observation cannot be archived without.
func (o *Observation) readIdentity(m *members) Rejection {
	var ok bool
	if !m.externalID.given() {
		return MissingExternalID
	}
	if o.ExternalID, ok = m.externalID.said(); !ok || !validExternalID(o.ExternalID) {
		o.ExternalID = ""
		return MalformedExternalID
	}
	if !m.entity.given() {
		return MissingEntity
	}
	name, ok := m.entity.said()
	if !ok {
		return MalformedEntity
	}
	if o.Entity, ok = ParseEntity(name); !ok {
		return MalformedEntity
	}
	if !m.revision.given() {
		return MissingRevision
	}
	revision, ok := parseInteger(m.revision.text, 1, MaxRevision)
	if !ok || m.revision.twice {
		return MalformedRevision
	}
	o.Revision = revision
	return ""
}

// readRest reads the rest and returns its first flaw.
func (o *Observation) readRest(m *members) *Flaw {
	if m.operation.given() {
		name, _ := m.operation.said()
		o.Operation, _ = ParseOperation(name)
	}
	if m.sourceUpdatedAt.given() {
		text, _ := m.sourceUpdatedAt.said()
		o.SourceUpdatedAt, _ = parseTime(text)
	}
	switch {
	case m.twice != nil:
		return (&Flaw{Rule: DuplicateName}).under(m.twice)
	case o.Operation == "":
		return &Flaw{InvalidOperation, "/operation"}
	case m.sourceUpdatedAt.given() && o.SourceUpdatedAt.IsZero():
		return &Flaw{InvalidTime, "/source_updated_at"}
	case o.Operation == Delete && o.Document != nil:
		return &Flaw{UnexpectedDocument, "/document"}
	case o.Operation == Upsert && o.Document == nil:
		return &Flaw{MissingDocument, "/document"}
	}
	if o.Raw != nil {
		if flaw := judge(o.Raw); flaw != nil {
			return flaw.under([]byte("raw"))
		}
	}
	if o.Document == nil {
		return nil
	}
	content, flaw := ReadDocument(o.Entity, o.Document)
	if flaw != nil {
		return flaw.under([]byte("document"))
	}
	o.Content = content
	return nil
}

// members are the members of an element that mean something.
type members struct {
	externalID, entity, revision, operation, sourceUpdatedAt, document, raw member
	twice                                                                   []byte // the first name that was given twice
}

type member struct {
	text  []byte // the exact bytes of the value; of the first one when there are two
	twice bool
}

// given reports whether the member is there; null counts as absent.
func (m member) given() bool { return m.text != nil && m.text[0] != 'n' }

// said returns what the string says; false when it is none, cannot be stored, or was given twice.
func (m member) said() (string, bool) {
	if m.text[0] != '"' || m.twice {
		return "", false
	}
	escaped := bytes.IndexByte(m.text, '\\') >= 0
	if escapesOf(m.text, escaped) != "" {
		return "", false
	}
	return string(unquote(m.text, escaped)), true
}

// readMembers finds the members of an element; false when it is no JSON object in UTF-8.
func readMembers(element []byte) (members, bool) {
	var (
		m     members
		s     = scanner{b: element}
		names = names{text: element}
		own   = names.open()
	)
	if !utf8.Valid(element) || !s.next('{') {
		return m, false
	}
	for closed := s.next('}'); !closed; {
		s.space()
		at := s.i
		quoted, escaped, ok := s.member()
		if !ok {
			return m, false
		}
		s.space()
		start := s.i
		if !s.value() {
			return m, false
		}
		if escapesOf(quoted, escaped) == "" { // else nothing can say the name: an unknown member, which is ignored
			name := unquote(quoted, escaped)
			m.note(name, element[start:s.i:s.i], names.add(&own, name, at))
		}
		if closed = s.next('}'); !closed && !s.next(',') {
			return m, false
		}
	}
	s.space()
	return m, s.i == len(element)
}

// note keeps one member.
func (m *members) note(name, value []byte, first bool) {
	if !first && m.twice == nil {
		m.twice = name
	}
	known := m.known(string(name))
	switch {
	case known == nil:
	case known.text != nil:
		known.twice = true
	default:
		known.text = value
	}
}

func (m *members) known(name string) *member {
	switch name {
	case "external_id":
		return &m.externalID
	case "entity":
		return &m.entity
	case "revision":
		return &m.revision
	case "operation":
		return &m.operation
	case "source_updated_at":
		return &m.sourceUpdatedAt
	case "document":
		return &m.document
	case "raw":
		return &m.raw
	default:
		return nil
	}
}
