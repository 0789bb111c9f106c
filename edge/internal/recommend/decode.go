package recommend

import (
	"bytes"
	"encoding/json"
	"strconv"

	"storefront.internal/edge/internal/intake"
	"storefront.internal/shared/fault"
	"storefront.internal/shared/ident"
)

// The bounds of a request.
const (
	maxPlacement = 64
	maxCart      = 100
	maxQuantity  = 1_000_000
	maxLimit     = 50
	defaultLimit = 10
	maxFaults    = 20 // that are told at once
)

// asked is a request that is well-formed.
type asked struct {
	placement string
	itemID    ident.ItemID
	shopper   intake.Shopper
	cart      []CartLine
	limit     int
}

// decode reads a body. What it returns shares no memory with it.
func (s *Service) decode(body []byte) (*asked, error) {
	shopper, err := s.shoppers.Read(body)
	if err != nil {
		return nil, err
	}
	d := decoder{out: asked{shopper: shopper, limit: defaultLimit}}
	members := d.object(body)
	d.placement(members["placement"])
	d.itemID(members["item_id"])
	d.limit(members["limit"])
	d.cart(members["cart"])
	if len(d.faults) > 0 {
		return nil, &fault.Error{Code: fault.InvalidRequest, Detail: "The request is not well-formed.", Fields: d.faults}
	}
	return &d.out, nil
}

// decoder gathers everything that is wrong. The body is known to be strict JSON by now, so names are there once.
type decoder struct {
	out    asked
	faults []fault.Field
}

func (d *decoder) fault(pointer, code, detail string) {
	if len(d.faults) < maxFaults {
		d.faults = append(d.faults, fault.Field{Pointer: pointer, Code: code, Detail: detail})
	}
}

// object reads the members by their exact names; a null counts as absent. Anything but an object has none.
func (d *decoder) object(raw json.RawMessage) map[string]json.RawMessage {
	var members map[string]json.RawMessage
	if json.Unmarshal(raw, &members) != nil {
		return nil
	}
	for name, value := range members {
		if string(value) == "null" {
			delete(members, name)
		}
	}
	return members
}

func (d *decoder) placement(raw json.RawMessage) {
	if raw == nil {
		d.fault("/placement", "missing", "The placement is missing.")
		return
	}
	s, ok := text(raw)
	if !ok || len(s) == 0 || len(s) > maxPlacement || !placementForm(s) {
		d.fault("/placement", "invalid", "The placement must be 1 to 64 characters of [a-z0-9_-].")
		return
	}
	d.out.placement = s
}

func placementForm(s string) bool {
	for i := range len(s) {
		c := s[i]
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '_' && c != '-' {
			return false
		}
	}
	return true
}

func (d *decoder) itemID(raw json.RawMessage) {
	id, ok := identifier(raw, ident.Item)
	if !ok {
		d.fault("/item_id", "invalid", "The item_id is not well-formed.")
	}
	d.out.itemID = ident.ItemID(id)
}

func (d *decoder) limit(raw json.RawMessage) {
	if raw == nil {
		return
	}
	n, ok := integer(raw, 1, maxLimit)
	if !ok {
		d.fault("/limit", "invalid", "The limit must be an integer from 1 to 50.")
		return
	}
	d.out.limit = n
}

func (d *decoder) cart(raw json.RawMessage) {
	if raw == nil {
		return
	}
	var lines []json.RawMessage
	if json.Unmarshal(raw, &lines) != nil {
		d.fault("/cart", "invalid", "The cart must be an array.")
		return
	}
	if len(lines) > maxCart {
		d.fault("/cart", "too_many", "The cart holds at most 100 lines.")
		return
	}
	for i, line := range lines {
		d.cartLine("/cart/"+strconv.Itoa(i), line)
	}
}

func (d *decoder) cartLine(pointer string, raw json.RawMessage) {
	if !bytes.HasPrefix(raw, []byte("{")) {
		d.fault(pointer, "invalid", "A cart line must be an object.")
		return
	}
	members := d.object(raw)
	item, ok := identifier(members["item_id"], ident.Item)
	if !ok || item == "" {
		d.fault(pointer+"/item_id", "invalid", "The item_id is missing or not well-formed.")
	}
	variant, ok := identifier(members["variant_id"], ident.Variant)
	if !ok {
		d.fault(pointer+"/variant_id", "invalid", "The variant_id is not well-formed.")
	}
	quantity, ok := integer(members["quantity"], 1, maxQuantity)
	if !ok {
		d.fault(pointer+"/quantity", "invalid", "The quantity must be an integer from 1 to 1000000.")
	}
	d.out.cart = append(d.out.cart, CartLine{ItemID: ident.ItemID(item), VariantID: ident.VariantID(variant), Quantity: quantity})
}

func text(raw json.RawMessage) (string, bool) {
	if len(raw) == 0 || raw[0] != '"' {
		return "", false
	}
	var s string
	return s, json.Unmarshal(raw, &s) == nil
}

// identifier reads an identifier; absent is well-formed.
func identifier(raw json.RawMessage, p ident.Prefix) (string, bool) {
	if raw == nil {
		return "", true
	}
	s, ok := text(raw)
	if !ok || !ident.Valid(p, s) {
		return "", false
	}
	return s, true
}

// integer reads a number without fraction or exponent.
func integer(raw json.RawMessage, least, most int) (int, bool) {
	n, err := strconv.Atoi(string(raw))
	return n, err == nil && n >= least && n <= most
}
