package signalrules

import (
	"bytes"
	"encoding/json"

	"storefront.internal/edge/internal/signaljson"
	"storefront.internal/shared/signal"
)

// Shopper is the visitor and the client of a request that is not a batch of signals.
type Shopper struct {
	Visitor          *signal.Visitor
	Client           json.RawMessage
	DiscardedVisitor bool // malformed, and left out
	DiscardedClient  bool
}

// ShopperValidator checks visitors and clients by the rules for those of signals. Its methods may be called
// at the same time.
type ShopperValidator struct{ rules *Rules }

// NewShopperValidator returns a ShopperValidator.
func NewShopperValidator() *ShopperValidator { return &ShopperValidator{rules: New(nil)} }

// Validate checks the values of the two members as they were sent; nil for one that is absent. They are parts
// of a body that is strict JSON. The result shares no memory with them.
func (s *ShopperValidator) Validate(visitor, client []byte) Shopper {
	body := []byte(`{"visitor":null`)
	if visitor != nil {
		body = append([]byte(`{"visitor":`), visitor...)
	}
	if client != nil {
		body = append(append(body, `,"client":`...), client...)
	}
	var d signaljson.Decoder
	element, err := d.DecodeElement(append(body, '}'))
	if err != nil { // not strict JSON, against the contract
		return Shopper{DiscardedVisitor: visitor != nil, DiscardedClient: client != nil}
	}
	var out Result
	v := s.rules.Validator(&d, "")
	v.element, v.out = element, &out
	v.visitor()
	v.client()
	return Shopper{Visitor: out.Signal.Visitor, Client: bytes.Clone(out.Signal.Client),
		DiscardedVisitor: out.DiscardedVisitor, DiscardedClient: out.DiscardedClient}
}
