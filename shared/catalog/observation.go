package catalog

import (
	"errors"
	"io"
	"log/slog"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"storefront.internal/shared/ident"
)

// Observation is one delivered element as read. Exactly one of three holds: it is Rejected and not archived;
// it is Quarantined and archived; or it is valid, and Completed unless it is a delete.
//
// Its slices alias the element. Since it may hold buyer data, it prints as a placeholder.
type Observation struct {
	ExternalID      string
	Entity          Entity
	Revision        int64     // 1 to MaxRevision
	Operation       Operation // empty when it is not a known operation, which is a violation
	SourceUpdatedAt time.Time // UTC, microseconds; zero when absent

	Raw      []byte // the exact bytes of raw, also for null; nil when absent
	Document []byte // the exact bytes of document; nil when absent or null

	Completed   Completed       // the document with our ids; zero for a delete
	Rejected    RejectionReason // empty unless rejected
	Quarantined *Violation      // nil unless quarantined
}

// String hides the content.
func (o Observation) String() string { return "[observation of " + string(o.Entity) + "]" }

// GoString hides the content.
func (o Observation) GoString() string { return o.String() }

// LogValue hides the content.
func (o Observation) LogValue() slog.Value {
	return slog.GroupValue(slog.String("entity", string(o.Entity)),
		slog.String("operation", string(o.Operation)),
		slog.Int64("revision", o.Revision))
}

// Reader reads elements one after another, from Split or out of quarantine. It keeps buffers between them,
// but nothing of an element. It is not safe for concurrent use.
type Reader struct {
	dec   jsontext.Decoder
	nodes []node
	free  []LocalizedText
}

// Read reads one element of a connection and completes its document.
func (d *Reader) Read(element []byte, c ident.ConnectionID, s ident.StoreID) Observation {
	m, ok := readMembers(&d.dec, element)
	if !ok {
		return Observation{Rejected: InvalidObservation}
	}
	o := Observation{Raw: m.byName["raw"].text, Operation: Upsert}
	if m.byName["document"].present() {
		o.Document = m.byName["document"].text
	}
	if o.Rejected = o.readIdentity(&m); o.Rejected != "" {
		return o
	}
	o.Quarantined = o.readRest(&d.dec, &m)
	if o.Quarantined == nil && o.Document != nil {
		o.Quarantined = d.complete(&o, c, s)
	}
	if o.Quarantined != nil {
		if o.Entity == Order {
			o.Quarantined.withoutBuyerData()
		}
	}
	return o
}

// readIdentity reads the members without which an element is rejected.
func (o *Observation) readIdentity(m *members) RejectionReason {
	var ok bool
	if !m.byName["external_id"].present() {
		return MissingExternalID
	}
	if o.ExternalID, ok = m.byName["external_id"].string(); !ok || !validExternalID(o.ExternalID) {
		o.ExternalID = ""
		return MalformedExternalID
	}
	if !m.byName["entity"].present() {
		return MissingEntity
	}
	name, ok := m.byName["entity"].string()
	if !ok {
		return MalformedEntity
	}
	if o.Entity, ok = ParseEntity(name); !ok {
		return MalformedEntity
	}
	if !m.byName["revision"].present() {
		return MissingRevision
	}
	revision, ok := parseInteger(m.byName["revision"].text, 1, MaxRevision)
	if !ok || m.byName["revision"].twice {
		return MalformedRevision
	}
	o.Revision = revision
	return ""
}

// readRest reads the other members and returns the first violation.
func (o *Observation) readRest(dec *jsontext.Decoder, m *members) *Violation {
	if m.byName["operation"].present() {
		name, _ := m.byName["operation"].string()
		o.Operation, _ = ParseOperation(name)
	}
	if m.byName["source_updated_at"].present() {
		text, _ := m.byName["source_updated_at"].string()
		o.SourceUpdatedAt, _ = parseTime(text)
	}
	switch {
	case m.duplicate != nil:
		token, _ := pointerToken(m.duplicate)
		return &Violation{DuplicateName, token}
	case o.Operation == "":
		return &Violation{InvalidOperation, "/operation"}
	case m.byName["source_updated_at"].present() && o.SourceUpdatedAt.IsZero():
		return &Violation{InvalidTime, "/source_updated_at"}
	case o.Operation == Delete && o.Document != nil:
		return &Violation{UnexpectedDocument, "/document"}
	case o.Operation == Upsert && o.Document == nil:
		return &Violation{MissingDocument, "/document"}
	}
	if o.Raw != nil {
		if violation := validate(dec, o.Raw); violation != nil {
			return violation.under("/raw")
		}
	}
	return nil
}

// complete reads the document of an observation and completes it.
func (d *Reader) complete(o *Observation, c ident.ConnectionID, s ident.StoreID) *Violation {
	writing := newCompletion(Identity{ConnectionID: c, StoreID: s, ExternalID: o.ExternalID,
		Revision: o.Revision}, len(o.Document))
	read, violation := d.document(o.Entity, o.Document, writing)
	if violation != nil {
		return violation.under("/document")
	}
	o.Completed = writing.end(read)
	return nil
}

// members holds the members of an element by name.
type members struct {
	byName    map[string]member
	duplicate []byte // the first name that occurs twice
}

type member struct {
	text  []byte // the exact bytes of the first value
	twice bool
}

// present reports whether the member is there; null counts as absent.
func (m member) present() bool { return m.text != nil && m.text[0] != 'n' }

// string returns the text of a string; false when it is not a string, cannot be stored, or occurs twice.
func (m member) string() (string, bool) {
	if m.text[0] != '"' || m.twice {
		return "", false
	}
	text, broken := unquote(m.text)
	return string(text), broken == ""
}

// readMembers finds the members of an element; false when it is not a JSON object in UTF-8.
func readMembers(dec *jsontext.Decoder, element []byte) (m members, ok bool) {
	if !utf8.Valid(element) {
		return m, false
	}
	if ok = m.read(dec, element, element); !ok {
		if clipped := clipDepth(element); clipped != nil {
			m = members{}
			ok = m.read(dec, element, clipped)
		}
	}
	return m, ok
}

// read takes the members of the text, which is the element or its clipped copy.
func (m *members) read(dec *jsontext.Decoder, element, text []byte) bool {
	decode(dec, text, jsontext.AllowDuplicateNames(true))
	if dec.PeekKind() != '{' {
		return false
	}
	_, err := dec.ReadToken()
	m.byName = make(map[string]member, 8)
	for err == nil && dec.PeekKind() != '}' {
		var quoted, value jsontext.Value
		if quoted, err = dec.ReadValue(); err != nil {
			return false
		}
		name, broken := unquote(quoted)
		if value, err = dec.ReadValue(); err != nil {
			return false
		}
		if broken != "" { // neither a known name nor one that a reason can show
			continue
		}
		end := dec.InputOffset()
		m.note(name, element[end-int64(len(value)):end:end])
	}
	if _, err = dec.ReadToken(); err != nil {
		return false
	}
	_, err = dec.ReadToken()
	return errors.Is(err, io.EOF)
}

// note keeps one member.
func (m *members) note(name, value []byte) {
	known, twice := m.byName[string(name)]
	if !twice {
		known.text = value
	} else if m.duplicate == nil {
		m.duplicate = name
	}
	known.twice = twice
	m.byName[string(name)] = known
}
