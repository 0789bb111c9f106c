package recommend

import (
	"bytes"
	"errors"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"storefront.internal/edge/internal/signalrules"
	"storefront.internal/shared/fault"
	"storefront.internal/shared/ident"
)

// The bounds of a request. MaxItems is also the most items of a fallback list.
const (
	MaxItems     = 50
	defaultItems = 10
	maxPlacement = 64
	maxCart      = 100
	maxExpand    = 8
	maxQuantity  = 1_000_000
	maxDepth     = 32
	maxPointer   = 512 // of the body that an error repeats
	maxErrors    = 20  // that are reported at once
)

// request is a well-formed request.
type request struct {
	placement string
	itemID    ident.ItemID
	shopper   signalrules.Shopper
	cart      []CartLine
	limit     int
	expand    bool // the answer has the cards of the items
}

// decode reads a body. What it returns shares no memory with it.
func (s *Service) decode(body []byte) (*request, error) {
	if err := checkJSON(body); err != nil {
		return nil, err
	}
	members := object(body)
	if members == nil {
		return nil, fault.Invalid("", "invalid_type", "The value has the wrong JSON type.")
	}
	d := decoder{out: request{limit: defaultItems,
		shopper: s.shoppers.Validate(members["visitor"], members["client"])}}
	d.placement(members["placement"])
	d.itemID(members["item_id"])
	d.limit(members["limit"])
	d.cart(members["cart"])
	d.expand(members["expand"])
	if len(d.errors) > 0 {
		return nil, &fault.Error{Code: fault.InvalidRequest, Detail: "The request is not well-formed.",
			Fields: d.errors}
	}
	return &d.out, nil
}

// checkJSON accepts one JSON value in valid UTF-8, without duplicate names and with at most 32 nested
// containers.
func checkJSON(body []byte) error {
	if !utf8.Valid(body) {
		return fault.Invalid("", "invalid_utf8", "The body is not valid UTF-8.")
	}
	// escapes of lone surrogates
	dec := jsontext.NewDecoder(bytes.NewBuffer(body), jsontext.AllowInvalidUTF8(true))
	for first := true; first || dec.StackDepth() > 0; first = false {
		_, err := dec.ReadToken()
		var syntax *jsontext.SyntacticError
		switch {
		case errors.Is(err, jsontext.ErrDuplicateName) && errors.As(err, &syntax):
			return fault.Invalid(shorten(syntax.JSONPointer), "duplicate_name",
				"A member name is there twice in one object.")
		case err != nil:
			return fault.Invalid(shorten(dec.StackPointer()), "invalid_json", "The body is not valid JSON.")
		case dec.StackDepth() > maxDepth:
			return fault.Invalid(shorten(dec.StackPointer()), "too_deep",
				"More than 32 containers are nested.")
		}
	}
	if len(bytes.TrimLeft(body[dec.InputOffset():], " \t\r\n")) > 0 {
		return fault.Invalid("", "trailing_bytes", "Bytes follow the JSON value.")
	}
	return nil
}

// shorten cuts a pointer at a step, so that an error does not repeat a long part of the body.
func shorten(p jsontext.Pointer) string {
	s := string(p)
	for len(s) > maxPointer {
		s = s[:strings.LastIndexByte(s, '/')]
	}
	return s
}

// decoder collects all errors of a request.
type decoder struct {
	out    request
	errors []fault.Field
}

func (d *decoder) invalid(pointer, code, detail string) {
	if len(d.errors) < maxErrors {
		d.errors = append(d.errors, fault.Field{Pointer: pointer, Code: code, Detail: detail})
	}
}

// object returns the members by their exact names, without those that are null, which counts as absent. It
// returns nil for anything but an object. The value has passed checkJSON.
func object(value jsontext.Value) map[string]jsontext.Value {
	var members map[string]jsontext.Value
	if json.Unmarshal(value, &members, jsontext.AllowInvalidUTF8(true)) != nil {
		return nil
	}
	for name, member := range members {
		if member.Kind() == 'n' {
			delete(members, name)
		}
	}
	return members
}

func (d *decoder) placement(value jsontext.Value) {
	if value == nil {
		d.invalid("/placement", "missing", "The placement is missing.")
		return
	}
	s, ok := text(value)
	if !ok || len(s) == 0 || len(s) > maxPlacement || !placementForm(s) {
		d.invalid("/placement", "invalid", "The placement must be 1 to 64 characters of [a-z0-9_-].")
		return
	}
	d.out.placement = s
}

func placementForm(s string) bool {
	return strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789_-") == ""
}

func (d *decoder) itemID(value jsontext.Value) {
	id, ok := identifier(value, ident.Item)
	if !ok {
		d.invalid("/item_id", "invalid", "The item_id is not well-formed.")
	}
	d.out.itemID = ident.ItemID(id)
}

func (d *decoder) limit(value jsontext.Value) {
	if value == nil {
		return
	}
	n, ok := integer(value, MaxItems)
	if !ok {
		d.invalid("/limit", "invalid", "The limit must be an integer from 1 to 50.")
		return
	}
	d.out.limit = n
}

// expand reads the names of what the answer adds to its items. "item" is the only one.
func (d *decoder) expand(value jsontext.Value) {
	if value == nil {
		return
	}
	var names []string
	if json.Unmarshal(value, &names) != nil || len(names) > maxExpand {
		d.invalid("/expand", "invalid", "The expand member must be an array of at most 8 names.")
		return
	}
	for i, name := range names {
		if name != "item" {
			d.invalid("/expand/"+strconv.Itoa(i), "invalid", "The only value of expand is item.")
			return
		}
	}
	d.out.expand = len(names) > 0
}

func (d *decoder) cart(value jsontext.Value) {
	if value == nil {
		return
	}
	var lines []jsontext.Value
	if json.Unmarshal(value, &lines, jsontext.AllowInvalidUTF8(true)) != nil {
		d.invalid("/cart", "invalid", "The cart must be an array.")
		return
	}
	if len(lines) > maxCart {
		d.invalid("/cart", "too_many", "The cart holds at most 100 lines.")
		return
	}
	for i, line := range lines {
		d.cartLine("/cart/"+strconv.Itoa(i), line)
	}
}

func (d *decoder) cartLine(pointer string, value jsontext.Value) {
	members := object(value)
	if members == nil {
		d.invalid(pointer, "invalid", "A cart line must be an object.")
		return
	}
	item, ok := identifier(members["item_id"], ident.Item)
	if !ok || item == "" {
		d.invalid(pointer+"/item_id", "invalid", "The item_id is missing or not well-formed.")
	}
	variant, ok := identifier(members["variant_id"], ident.Variant)
	if !ok {
		d.invalid(pointer+"/variant_id", "invalid", "The variant_id is not well-formed.")
	}
	quantity, ok := integer(members["quantity"], maxQuantity)
	if !ok {
		d.invalid(pointer+"/quantity", "invalid", "The quantity must be an integer from 1 to 1000000.")
	}
	d.out.cart = append(d.out.cart,
		CartLine{ItemID: ident.ItemID(item), VariantID: ident.VariantID(variant), Quantity: quantity})
}

func text(value jsontext.Value) (string, bool) {
	s, err := jsontext.AppendUnquote(nil, value)
	return string(s), err == nil
}

// identifier reads an identifier; an absent one is valid.
func identifier(value jsontext.Value, p ident.Prefix) (string, bool) {
	if value == nil {
		return "", true
	}
	s, ok := text(value)
	if !ok || !ident.Valid(p, s) {
		return "", false
	}
	return s, true
}

// integer reads a number from 1 to most, without fraction or exponent.
func integer(value jsontext.Value, most int) (int, bool) {
	n, err := strconv.Atoi(string(value))
	return n, err == nil && n >= 1 && n <= most
}
