package intake

import (
	"fmt"
	"unicode/utf8"
	"unsafe"

	"storefront.internal/shared/fault"
)

// maxSignals is the greatest number of signals of a batch (spec.md "Limits").
const maxSignals = 50

// slot is the place of a known member: in the body, or in an element.
type slot int8

const noSlot slot = -1

// slotSignals is the body's one known member. It has a number of its own, so that a slot alone says where it belongs.
const (
	slotSignals slot = 0
	slotsOfBody int  = 1
)

// The known members of an element, those of its objects included. The first nine are in the order in which rules are
// judged (contract, section 2); slot 0 stays unused.
const (
	slotSignalID slot = iota + 1
	slotType
	slotOccurredAt
	slotDecisionID
	slotItemID
	slotVariantID
	slotPosition
	slotQuantity
	slotOrderExternalID
	slotVisitor
	slotClient
	slotVisitorID
	slotSessionID
	slotPageURL
	slotLanguages
	slotTimezone
	slotViewport
	slotWidth
	slotHeight
	slotPixelRatio
	slotsOfElement
)

// shape says which members of an object are known.
type shape uint8

const (
	shapeNone shape = iota
	shapeBody
	shapeElement
	shapeVisitor
	shapeClient
	shapeViewport
)

// shape returns the shape of an object that is the slot's value.
func (at slot) shape() shape {
	switch at {
	case slotVisitor:
		return shapeVisitor
	case slotClient:
		return shapeClient
	case slotViewport:
		return shapeViewport
	default:
		return shapeNone
	}
}

// find returns the slot of a member name. Names match exactly.
func (sh shape) find(name string) slot {
	switch sh {
	case shapeBody:
		if name == "signals" {
			return slotSignals
		}
	case shapeElement:
		return findInElement(name)
	case shapeVisitor:
		switch name {
		case "visitor_id":
			return slotVisitorID
		case "session_id":
			return slotSessionID
		}
	case shapeClient:
		switch name {
		case "page_url":
			return slotPageURL
		case "languages":
			return slotLanguages
		case "timezone":
			return slotTimezone
		case "viewport":
			return slotViewport
		}
	case shapeViewport:
		switch name {
		case "width":
			return slotWidth
		case "height":
			return slotHeight
		case "pixel_ratio":
			return slotPixelRatio
		}
	}
	return noSlot
}

func findInElement(name string) slot {
	switch name {
	case "signal_id":
		return slotSignalID
	case "type":
		return slotType
	case "occurred_at":
		return slotOccurredAt
	case "decision_id":
		return slotDecisionID
	case "item_id":
		return slotItemID
	case "variant_id":
		return slotVariantID
	case "position":
		return slotPosition
	case "quantity":
		return slotQuantity
	case "order_external_id":
		return slotOrderExternalID
	case "visitor":
		return slotVisitor
	case "client":
		return slotClient
	}
	return noSlot
}

// element is one entry of signals: what it is, and where its known members are.
type element struct {
	self    value
	members [slotsOfElement]value
}

// batch is what the body's signals held; elements beyond the limit are counted only.
type batch struct {
	count    int
	elements [maxSignals]element
}

func (b *batch) reset() {
	clear(b.elements[:min(b.count, maxSignals)])
	b.count = 0
}

// decode reads a body, which must not change while anything is used that was read of it. Its errors are those of the whole body, grammar before number of signals: a body of more than
// 50 signals is a 422 only when it is strict JSON, whatever its elements are.
func (sc *scanner) decode(body []byte) *fault.Error {
	sc.b, sc.s = body, unsafe.String(unsafe.SliceData(body), len(body)) //nolint:gosec // a copy would be half of what a request allocates
	if !utf8.Valid(body) {
		return invalidBody(badUTF8, "")
	}
	var v value
	if !sc.root(&v) {
		return sc.problem()
	}
	signals := &sc.body[slotSignals]
	switch {
	case v.kind != object:
		return invalidBody(wrongType, "")
	case !signals.given():
		return invalidBody(missingSignals, "/signals")
	case signals.kind != array:
		return invalidBody(wrongType, "/signals")
	case sc.batch.count == 0:
		return invalidBody(emptySignals, "/signals")
	case sc.batch.count > maxSignals:
		return tooMany(sc.batch.count)
	}
	return nil
}

func tooMany(n int) *fault.Error {
	err := fault.New(fault.SignalBatchLimitExceeded, fmt.Sprintf("A batch holds at most %d signals.", maxSignals))
	err.Extra = map[string]any{"max_signals_per_batch": maxSignals, "actual_signals": n}
	return err
}

// root reads the whole text.
func (sc *scanner) root(v *value) bool {
	ok := false
	if sc.next() == '{' {
		ok = sc.object(v, shapeBody, sc.body[:])
	} else {
		ok = sc.value(v, noSlot, nil)
	}
	if !ok {
		return false
	}
	sc.space()
	if sc.pos != len(sc.b) {
		return sc.fail(trailingBytes)
	}
	return true
}

// signals reads the array of elements.
func (sc *scanner) signals(v *value) bool {
	if !sc.open(v, array) {
		return false
	}
	if sc.next() == ']' {
		return sc.close(v)
	}
	for {
		sc.path[sc.depth] = step{what: indexStep, index: int32(sc.batch.count)}
		if !sc.element() {
			return false
		}
		switch sc.next() {
		case ',':
			sc.pos++
		case ']':
			return sc.close(v)
		default:
			return sc.syntax()
		}
	}
}

func (sc *scanner) element() bool {
	i := sc.batch.count
	sc.batch.count++
	if i >= maxSignals {
		return sc.value(&sc.ignored, noSlot, nil)
	}
	e := &sc.batch.elements[i]
	if sc.next() == '{' {
		return sc.object(&e.self, shapeElement, e.members[:])
	}
	return sc.value(&e.self, noSlot, nil)
}
