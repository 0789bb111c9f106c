package intake

import (
	"encoding/json"
	"unicode/utf8"

	"storefront.internal/shared/signal"
)

// Shopper is what a body other than a batch of signals tells of the shopper, by the same rules: what is malformed is
// discarded whole.
type Shopper struct {
	Visitor          *signal.Visitor
	Client           json.RawMessage
	DiscardedVisitor bool
	DiscardedClient  bool
}

// ShopperReader reads the members visitor and client of an object (operation E1). It may be used by many goroutines.
type ShopperReader struct{ rules rules }

// NewShopperReader returns a reader.
func NewShopperReader() *ShopperReader {
	return &ShopperReader{rules: rules{reasons: newRuleReasons(), zones: newZones()}}
}

// Read judges the whole body strictly (contract, section 1 "Strict JSON") and returns what it tells of the shopper.
// The error is a fault invalid_request: the body is no strict JSON, or no object. Nothing of the body is kept.
func (r *ShopperReader) Read(body []byte) (Shopper, error) {
	var sc scanner
	var e element
	sc.b, sc.s = body, string(body)
	if !utf8.Valid(body) {
		return Shopper{}, invalidBody(badUTF8, "")
	}
	ok := false
	if sc.next() == '{' {
		ok = sc.object(&e.self, shapeElement, e.members[:])
	} else {
		ok = sc.value(&e.self, noSlot, nil)
	}
	if sc.space(); ok && sc.pos != len(sc.b) {
		ok = sc.fail(trailingBytes)
	}
	switch {
	case !ok:
		return Shopper{}, sc.problem()
	case e.self.kind != object:
		return Shopper{}, invalidBody(wrongType, "")
	}
	var out judged
	j := judging{rules: &r.rules, sc: &sc, e: &e, out: &out}
	j.visitor()
	j.client()
	return Shopper{Visitor: out.signal.Visitor, Client: append(json.RawMessage(nil), out.signal.Client...),
		DiscardedVisitor: out.discarded.visitor, DiscardedClient: out.discarded.client}, nil
}
