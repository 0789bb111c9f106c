package intake

import (
	"unicode/utf8"

	"storefront.internal/shared/ident"
	"storefront.internal/shared/signal"
)

// Ranges of an element's numbers and texts (contract, section 2 "Operation 1, per element").
const (
	maxPosition        = 100_000
	maxQuantity        = 1_000_000
	maxOrderExternalID = 128 // characters
)

// DecisionVerifier says whether this service minted a Decision id for the connection. It answers unknown and foreign
// ids alike, in like time, and does no I/O.
type DecisionVerifier interface {
	Verify(c ident.ConnectionID, id string) bool
}

// rules judges elements. It is pure but for the Decision id's MAC.
type rules struct {
	reasons   *ruleReasons
	zones     map[string]struct{}
	decisions DecisionVerifier
}

// judged is a sound element: its Signal, and the room that the Signal's pointers point into.
type judged struct {
	signal             signal.Signal
	position, quantity int32
	visitor            signal.Visitor
	discarded          discards
}

// judging is the judgement of one batch's elements, one after the other.
type judging struct {
	*rules
	sc         *scanner
	connection ident.ConnectionID
	verified   string // the Decision id that was verified last: most batches hang from one
	zone       string // the time zone that was found right last, and the languages as sent: most batches are one shopper's
	spoken     string
	e          *element
	out        *judged
}

// judge checks the element by the rules in the order of the Signal table; the first that fails is the answer, "" when
// none does. A malformed visitor or client rejects nothing: it is discarded.
func (j *judging) judge(e *element, out *judged) signal.Reason {
	if e.self.kind != object {
		return signal.InvalidSignal
	}
	j.e, j.out = e, out
	for _, rule := range [...]func(*judging) signal.Reason{
		(*judging).signalID, (*judging).signalType, (*judging).occurredAt, (*judging).decisionID, (*judging).itemID,
		(*judging).variantID, (*judging).position, (*judging).quantity, (*judging).orderExternalID, (*judging).ownDecision,
	} {
		if reason := rule(j); reason != "" {
			return reason
		}
	}
	j.visitor()
	j.client()
	return ""
}

func (j *judging) member(at slot) *value { return &j.e.members[at] }

// storable returns the member's text when it is text that can be stored.
func (j *judging) storable(at slot) (string, bool) {
	v := j.member(at)
	if v.kind != text || v.flags&unstorable != 0 {
		return "", false
	}
	return j.sc.string(v), true
}

// identifier reads an identifier; "" and no reason when it is absent.
func (j *judging) identifier(at slot, prefix ident.Prefix) (string, signal.Reason) {
	if !j.member(at).given() {
		return "", ""
	}
	s, ok := j.storable(at)
	if !ok || !ident.Valid(prefix, s) {
		return "", j.reasons[at].invalid
	}
	return s, ""
}

// required is identifier for a member that every signal has.
func (j *judging) required(at slot, prefix ident.Prefix) (string, signal.Reason) {
	if !j.member(at).given() {
		return "", j.reasons[at].missing
	}
	return j.identifier(at, prefix)
}

func (j *judging) signalID() signal.Reason {
	id, reason := j.required(slotSignalID, ident.Signal)
	j.out.signal.ID = ident.SignalID(id)
	return reason
}

func (j *judging) signalType() signal.Reason {
	v := j.member(slotType)
	if !v.given() {
		return j.reasons[slotType].missing
	}
	name, ok := j.storable(slotType)
	if ok {
		j.out.signal.Type, ok = signal.ParseType([]byte(name))
	}
	if !ok {
		return j.reasons[slotType].invalid
	}
	return ""
}

func (j *judging) occurredAt() signal.Reason {
	v := j.member(slotOccurredAt)
	if !v.given() {
		return j.reasons[slotOccurredAt].missing
	}
	s, ok := j.storable(slotOccurredAt)
	if ok {
		j.out.signal.OccurredAt, ok = parseTime(s)
	}
	if !ok || j.out.signal.OccurredAt.Year() < 2000 || j.out.signal.OccurredAt.Year() > 2099 {
		return j.reasons[slotOccurredAt].invalid
	}
	return ""
}

func (j *judging) decisionID() signal.Reason {
	id, reason := j.required(slotDecisionID, ident.Decision)
	j.out.signal.DecisionID = ident.DecisionID(id)
	return reason
}

// itemID: absent on an impression, which is of the whole recommendation; required on everything else.
func (j *judging) itemID() signal.Reason {
	given := j.member(slotItemID).given()
	impression := j.out.signal.Type == signal.Impression
	switch {
	case given && impression:
		return j.reasons[slotItemID].unexpected
	case !given && !impression:
		return j.reasons[slotItemID].missing
	}
	id, reason := j.identifier(slotItemID, ident.Item)
	j.out.signal.ItemID = ident.ItemID(id)
	return reason
}

func (j *judging) variantID() signal.Reason {
	id, reason := j.identifier(slotVariantID, ident.Variant)
	j.out.signal.VariantID = ident.VariantID(id)
	return reason
}

func (j *judging) position() signal.Reason {
	if !j.member(slotPosition).given() {
		return ""
	}
	n, ok := j.sc.integer(j.member(slotPosition), 0, maxPosition)
	if !ok {
		return j.reasons[slotPosition].invalid
	}
	j.out.position = n
	j.out.signal.Position = &j.out.position
	return ""
}

func (j *judging) quantity() signal.Reason {
	given := j.member(slotQuantity).given()
	least := int64(1)
	switch j.out.signal.Type {
	case signal.AddToCart, signal.Purchase:
	case signal.UpdateQuantity:
		if !given {
			return j.reasons[slotQuantity].missing
		}
		least = 0
	default:
		if given {
			return j.reasons[slotQuantity].unexpected
		}
	}
	if !given {
		return ""
	}
	n, ok := j.sc.integer(j.member(slotQuantity), least, maxQuantity)
	if !ok {
		return j.reasons[slotQuantity].invalid
	}
	j.out.quantity = n
	j.out.signal.Quantity = &j.out.quantity
	return ""
}

func (j *judging) orderExternalID() signal.Reason {
	if !j.member(slotOrderExternalID).given() {
		return ""
	}
	if j.out.signal.Type != signal.Purchase {
		return j.reasons[slotOrderExternalID].unexpected
	}
	s, ok := j.storable(slotOrderExternalID)
	if n := utf8.RuneCountInString(s); !ok || n < 1 || n > maxOrderExternalID {
		return j.reasons[slotOrderExternalID].invalid
	}
	j.out.signal.OrderExternalID = s
	return ""
}

// ownDecision comes last: every well-formed id that is not ours for this connection is unknown.
func (j *judging) ownDecision() signal.Reason {
	id := string(j.out.signal.DecisionID)
	if id == j.verified {
		return ""
	}
	if !j.decisions.Verify(j.connection, id) {
		return signal.UnknownDecision
	}
	j.verified = id
	return ""
}
