package signalrules

import (
	"unicode/utf8"

	"storefront.internal/edge/internal/signaljson"
	"storefront.internal/shared/ident"
	"storefront.internal/shared/rfc3339"
	"storefront.internal/shared/signal"
)

// Ranges of an element's numbers and texts.
const (
	maxPosition        = 100_000
	maxQuantity        = 1_000_000
	maxOrderExternalID = 128 // characters
)

// DecisionVerifier says whether this service minted a Decision id for the connection. It does not tell
// unknown ids from those of other connections, takes the same time for both, and does no I/O.
type DecisionVerifier interface {
	Verify(c ident.ConnectionID, id string) bool
}

// Rules are the rules with what they look up. Its methods may be called at the same time.
type Rules struct {
	reasons   *reasonTable
	timezones map[string]struct{}
	decisions DecisionVerifier
}

// New returns the rules. The verifier may be nil when only visitors and clients are validated.
func New(decisions DecisionVerifier) *Rules {
	return &Rules{reasons: newReasonTable(), timezones: newTimezones(), decisions: decisions}
}

// Result is a valid element: its Signal, and the memory that the Signal's pointers point into.
type Result struct {
	Signal                            signal.Signal
	DiscardedVisitor, DiscardedClient bool // malformed, and left out of the Signal

	position, quantity int32
	visitor            signal.Visitor
}

// Validator checks the elements of one batch, one after the other. It remembers the last Decision, time zone
// and languages that it found valid, since most elements of a batch have the same.
type Validator struct {
	*Rules
	decoder    *signaljson.Decoder
	connection ident.ConnectionID

	lastDecision  string
	lastTimezone  string
	lastLanguages []byte // as sent

	element *signaljson.Element
	out     *Result
}

// Validator returns a Validator of what the decoder has read.
func (r *Rules) Validator(d *signaljson.Decoder, c ident.ConnectionID) Validator {
	return Validator{Rules: r, decoder: d, connection: c}
}

// Validate checks the element and fills out. It returns the reason of the first rule that fails, "" when none
// does. A malformed visitor or client does not reject the element: it is discarded.
func (v *Validator) Validate(e *signaljson.Element, out *Result) signal.Reason {
	if !e.IsObject() {
		return signal.InvalidSignal
	}
	v.element, v.out = e, out
	for _, rule := range [...]func(*Validator) signal.Reason{
		(*Validator).signalID, (*Validator).signalType, (*Validator).occurredAt, (*Validator).decisionID,
		(*Validator).itemID, (*Validator).variantID, (*Validator).position, (*Validator).quantity,
		(*Validator).orderExternalID, (*Validator).ownDecision,
	} {
		if reason := rule(v); reason != "" {
			return reason
		}
	}
	v.visitor()
	v.client()
	return ""
}

// SentID returns the signal_id of a rejected element; false when it is no text that can be written.
func (v *Validator) SentID(e *signaljson.Element) (string, bool) {
	id := e.Member(signaljson.SignalID)
	if !id.Storable() {
		return "", false
	}
	return v.decoder.String(id), true
}

func (v *Validator) present(m signaljson.Member) bool { return v.element.Member(m).Present() }

// text returns the member's text; false when it is no text or cannot be stored.
func (v *Validator) text(m signaljson.Member) (string, bool) {
	value := v.element.Member(m)
	if !value.Storable() {
		return "", false
	}
	return v.decoder.String(value), true
}

// identifier returns the member's identifier; "" and no reason when it is absent.
func (v *Validator) identifier(m signaljson.Member, prefix ident.Prefix) (string, signal.Reason) {
	if !v.present(m) {
		return "", ""
	}
	s, ok := v.text(m)
	if !ok || !ident.Valid(prefix, s) {
		return "", v.reasons[m].invalid
	}
	return s, ""
}

// required is identifier for a member that every signal has.
func (v *Validator) required(m signaljson.Member, prefix ident.Prefix) (string, signal.Reason) {
	if !v.present(m) {
		return "", v.reasons[m].missing
	}
	return v.identifier(m, prefix)
}

func (v *Validator) signalID() signal.Reason {
	id, reason := v.required(signaljson.SignalID, ident.Signal)
	v.out.Signal.ID = ident.SignalID(id)
	return reason
}

func (v *Validator) signalType() signal.Reason {
	if !v.present(signaljson.Type) {
		return v.reasons[signaljson.Type].missing
	}
	name, ok := v.text(signaljson.Type)
	if ok {
		v.out.Signal.Type, ok = signal.ParseType([]byte(name))
	}
	if !ok {
		return v.reasons[signaljson.Type].invalid
	}
	return ""
}

func (v *Validator) occurredAt() signal.Reason {
	if !v.present(signaljson.OccurredAt) {
		return v.reasons[signaljson.OccurredAt].missing
	}
	s, ok := v.text(signaljson.OccurredAt)
	if ok {
		v.out.Signal.OccurredAt, ok = rfc3339.Parse(s)
	}
	if year := v.out.Signal.OccurredAt.Year(); !ok || year < 2000 || year > 2099 {
		return v.reasons[signaljson.OccurredAt].invalid
	}
	return ""
}

func (v *Validator) decisionID() signal.Reason {
	id, reason := v.required(signaljson.DecisionID, ident.Decision)
	v.out.Signal.DecisionID = ident.DecisionID(id)
	return reason
}

// itemID must be absent on an impression, which is of the whole recommendation, and present on everything
// else.
func (v *Validator) itemID() signal.Reason {
	present := v.present(signaljson.ItemID)
	impression := v.out.Signal.Type == signal.Impression
	switch {
	case present && impression:
		return v.reasons[signaljson.ItemID].unexpected
	case !present && !impression:
		return v.reasons[signaljson.ItemID].missing
	}
	id, reason := v.identifier(signaljson.ItemID, ident.Item)
	v.out.Signal.ItemID = ident.ItemID(id)
	return reason
}

func (v *Validator) variantID() signal.Reason {
	id, reason := v.identifier(signaljson.VariantID, ident.Variant)
	v.out.Signal.VariantID = ident.VariantID(id)
	return reason
}

func (v *Validator) position() signal.Reason {
	if !v.present(signaljson.Position) {
		return ""
	}
	n, ok := v.decoder.Integer(v.element.Member(signaljson.Position), 0, maxPosition)
	if !ok {
		return v.reasons[signaljson.Position].invalid
	}
	v.out.position = n
	v.out.Signal.Position = &v.out.position
	return ""
}

func (v *Validator) quantity() signal.Reason {
	present := v.present(signaljson.Quantity)
	least := int64(1)
	switch v.out.Signal.Type {
	case signal.AddToCart, signal.Purchase:
	case signal.UpdateQuantity:
		if !present {
			return v.reasons[signaljson.Quantity].missing
		}
		least = 0
	default:
		if present {
			return v.reasons[signaljson.Quantity].unexpected
		}
	}
	if !present {
		return ""
	}
	n, ok := v.decoder.Integer(v.element.Member(signaljson.Quantity), least, maxQuantity)
	if !ok {
		return v.reasons[signaljson.Quantity].invalid
	}
	v.out.quantity = n
	v.out.Signal.Quantity = &v.out.quantity
	return ""
}

func (v *Validator) orderExternalID() signal.Reason {
	if !v.present(signaljson.OrderExternalID) {
		return ""
	}
	if v.out.Signal.Type != signal.Purchase {
		return v.reasons[signaljson.OrderExternalID].unexpected
	}
	s, ok := v.text(signaljson.OrderExternalID)
	if n := utf8.RuneCountInString(s); !ok || n < 1 || n > maxOrderExternalID {
		return v.reasons[signaljson.OrderExternalID].invalid
	}
	v.out.Signal.OrderExternalID = s
	return ""
}

// ownDecision is the last rule: a well-formed Decision id that was not minted for this connection is unknown.
func (v *Validator) ownDecision() signal.Reason {
	id := string(v.out.Signal.DecisionID)
	if id == v.lastDecision {
		return ""
	}
	if !v.decisions.Verify(v.connection, id) {
		return signal.UnknownDecision
	}
	v.lastDecision = id
	return ""
}
