package shopify

import (
	"storefront.internal/control/internal/provider"
	"storefront.internal/control/internal/provider/payload"
	"storefront.internal/shared/catalog"
)

// read makes an entity of its own line and those of its children, whose lists their global ids tell.
func (lines entityLines) read(e catalog.Entity, profile provider.Profile) provider.Fetched {
	f := provider.Fetched{Entity: e, Raw: payload.JoinLines(lines...), RawFormat: provider.JSONL}
	if len(lines) == 1 {
		f.RawFormat = provider.JSON
	}
	if len(lines) > maxEntityLines {
		id, _ := lineIDs(lines[0])
		f.ExternalID, _ = parseGID(id)
		f.Malformed = &provider.Malformed{Reason: "too_many lines"}
		return f
	}
	if e == catalog.Order {
		var o order
		if decodeFailed(&f, lines[0], &o) {
			return f
		}
		for _, text := range lines[1:] {
			if !addChild(&f, text, &o.Lines) {
				return f
			}
		}
		o.setDocument(&f, profile)
		return f
	}
	var p product
	if decodeFailed(&f, lines[0], &p) {
		return f
	}
	for _, text := range lines[1:] {
		id, _ := lineIDs(text)
		ok := true
		switch _, kind := parseGID(id); kind {
		case "ProductVariant":
			ok = addChild(&f, text, &p.Variants)
		case "Collection":
			ok = addChild(&f, text, &p.Collections)
		case "MediaImage", "ProductImage", "ImageSource":
			ok = addChild(&f, text, &p.Media)
		}
		if !ok {
			return f
		}
	}
	p.setDocument(&f, profile)
	return f
}

// addChild appends a child to a list of its parent.
func addChild[T any](f *provider.Fetched, text []byte, list *connection[T]) bool {
	var child T
	if err := payload.Decode(text, &child); err != nil {
		id, _ := lineIDs(text)
		_, kind := parseGID(id)
		f.Malformed = &provider.Malformed{Reason: "child of type " + knownType(kind) + ": " + err.Error()}
		return false
	}
	list.Nodes = append(list.Nodes, child)
	return true
}

// knownType replaces an unknown type, so that a reason holds no text of the provider.
func knownType(kind string) string {
	switch kind {
	case "ProductVariant", "Collection", "MediaImage", "LineItem":
		return kind
	default:
		return "unknown"
	}
}
