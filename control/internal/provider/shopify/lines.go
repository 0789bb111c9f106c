package shopify

import (
	"storefront.internal/control/internal/provider"
	"storefront.internal/control/internal/provider/payload"
	"storefront.internal/shared/catalog"
)

// read gives an entity of an export its document: its own line, and the lines of its children by the type of their ids.
func (lines group) read(e catalog.Entity, profile provider.Profile) provider.Fetched {
	f := provider.Fetched{Entity: e, Raw: payload.Join(lines...), Form: provider.JSONL}
	if len(lines) == 1 {
		f.Form = provider.JSON
	}
	if e == catalog.Order {
		var o order
		if malformed(&f, lines[0], &o) {
			return f
		}
		for _, text := range lines[1:] {
			if !adopt(&f, text, &o.Lines) {
				return f
			}
		}
		o.judge(&f, profile)
		return f
	}
	var p product
	if malformed(&f, lines[0], &p) {
		return f
	}
	for _, text := range lines[1:] {
		id, _ := identify(text)
		ok := true
		switch _, kind := number(id); kind {
		case "ProductVariant":
			ok = adopt(&f, text, &p.Variants)
		case "Collection":
			ok = adopt(&f, text, &p.Collections)
		case "MediaImage", "ProductImage", "ImageSource":
			ok = adopt(&f, text, &p.Media)
		}
		if !ok {
			return f
		}
	}
	p.judge(&f, profile)
	return f
}

// adopt appends a child to a list of its parent.
func adopt[T any](f *provider.Fetched, text []byte, list *connection[T]) bool {
	var child T
	if err := payload.Decode(text, &child); err != nil {
		id, _ := identify(text)
		_, kind := number(id)
		f.Malformed = &provider.Malformed{Reason: "child of type " + known(kind) + ": " + err.Error()}
		return false
	}
	list.Nodes = append(list.Nodes, child)
	return true
}

// known keeps what the provider wrote out of a reason.
func known(kind string) string {
	switch kind {
	case "ProductVariant", "Collection", "MediaImage", "LineItem":
		return kind
	default:
		return "unknown"
	}
}
