package sink

import (
	"encoding/json"
	"strconv"

	"storefront.internal/engine-relay/internal/cart"
	"storefront.internal/shared/rfc3339"
	"storefront.internal/shared/signal"
)

// appendInteraction appends the interaction as the engine gets it (schema Interaction of
// engine.openapi.yaml): members in this order, those without a value left out. engine_ids come last, so that
// package deliveries can insert them before the closing brace when the Decision is stored later.
func appendInteraction(dst []byte, p *pendingSignal, line *cart.Snapshot, engineIDs []byte) []byte {
	r, s := p.request.record, p.signal
	dst = append(dst, `{"signal_id":"`...)
	dst = append(dst, s.ID...)
	dst = append(dst, '"')
	dst = appendText(dst, "connection_id", string(r.ConnectionID))
	dst = appendText(dst, "store_id", string(r.StoreID))
	dst = appendText(dst, "type", string(s.Type))
	dst = append(dst, `,"occurred_at":"`...)
	dst = rfc3339.Append(dst, s.OccurredAt)
	dst = append(dst, `","received_at":"`...)
	dst = rfc3339.Append(dst, r.ReceivedAt)
	dst = append(dst, '"')
	dst = appendText(dst, "decision_id", string(s.DecisionID))
	dst = appendText(dst, "item_id", string(s.ItemID))
	dst = appendText(dst, "variant_id", string(s.VariantID))
	dst = appendNumber(dst, "position", s.Position)
	dst = appendNumber(dst, "quantity", s.Quantity)
	dst = appendText(dst, "order_external_id", s.OrderExternalID)
	dst = appendVisitor(dst, s.Visitor)
	if line != nil {
		dst = appendLine(dst, s, line)
	}
	if engineIDs != nil {
		dst = append(dst, `,"engine_ids":`...)
		dst = append(dst, engineIDs...)
	}
	return append(dst, '}')
}

func appendVisitor(dst []byte, v *signal.Visitor) []byte {
	if v == nil || v.VisitorID == "" && v.SessionID == "" {
		return dst
	}
	dst = append(dst, `,"visitor":{`...)
	start := len(dst)
	dst = appendText(dst, "visitor_id", string(v.VisitorID))
	dst = appendText(dst, "session_id", string(v.SessionID))
	return append(append(dst[:start], dst[start+1:]...), '}') // without the first comma
}

func appendLine(dst []byte, s *signal.Signal, line *cart.Snapshot) []byte {
	dst = append(dst, `,"cart_line":{"item_id":"`...)
	dst = append(dst, s.ItemID...)
	dst = append(dst, '"')
	dst = appendText(dst, "variant_id", string(s.VariantID))
	dst = append(dst, `,"quantity":`...)
	dst = strconv.AppendInt(dst, int64(line.Quantity), 10)
	dst = append(dst, `,"revision":`...)
	dst = strconv.AppendInt(dst, line.Revision, 10)
	return append(dst, '}')
}

func appendName(dst []byte, name string) []byte {
	dst = append(dst, ',', '"')
	dst = append(dst, name...)
	return append(dst, '"', ':')
}

func appendText(dst []byte, name, value string) []byte {
	if value == "" {
		return dst
	}
	dst = appendName(dst, name)
	if needsNoEscape(value) {
		dst = append(dst, '"')
		dst = append(dst, value...)
		return append(dst, '"')
	}
	quoted, _ := json.Marshal(value) // a string always marshals
	return append(dst, quoted...)
}

// needsNoEscape reports whether JSON writes the text as it is.
func needsNoEscape(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' || c > '~' {
			return false
		}
	}
	return true
}

func appendNumber(dst []byte, name string, n *int32) []byte {
	if n == nil {
		return dst
	}
	return strconv.AppendInt(appendName(dst, name), int64(*n), 10)
}

// VisitorPattern is in the body of every interaction with a visitor, and in no other.
func VisitorPattern() []byte { return []byte(`,"visitor":{"`) }

// OrderPattern is in the body of every interaction that has the order.
func OrderPattern(id string) []byte { return appendText(nil, "order_external_id", id) }
