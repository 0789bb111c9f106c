package signal

import (
	"encoding/json"
	"errors"
	"strconv"
	"time"

	"storefront.internal/shared/ident"
)

// Decision carries a served recommendation to the relay.
type Decision struct {
	DecisionID   ident.DecisionID   `json:"decision_id"`
	ConnectionID ident.ConnectionID `json:"connection_id"`
	StoreID      ident.StoreID      `json:"store_id"`
	Placement    string             `json:"placement"`
	Source       string             `json:"source"` // engine or fallback
	ServedAt     time.Time          `json:"served_at"`
	Items        []DecisionItem     `json:"items"`
	EngineIDs    json.RawMessage    `json:"engine_ids"` // the engine's own ids, an object; nil for a fallback
	Visitor      *Visitor           `json:"visitor"`
}

// DecisionItem is one recommended product.
type DecisionItem struct {
	Position  int             `json:"position"`
	ItemID    ident.ItemID    `json:"item_id"`
	VariantID ident.VariantID `json:"variant_id,omitempty"`
}

// AppendDecision appends the Decision as JSON.
func AppendDecision(dst []byte, d *Decision) []byte {
	dst = append(dst, `{"schema":1`...)
	dst = appendMember(dst, "decision_id", string(d.DecisionID))
	dst = appendMember(dst, "connection_id", string(d.ConnectionID))
	dst = appendMember(dst, "store_id", string(d.StoreID))
	dst = appendMember(dst, "placement", d.Placement)
	dst = appendMember(dst, "source", d.Source)
	dst = appendTime(dst, "served_at", d.ServedAt)
	dst = append(appendName(dst, "items"), '[')
	for i := range d.Items {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = AppendDecisionItem(dst, &d.Items[i])
	}
	dst = append(dst, ']')
	if d.EngineIDs != nil {
		dst = append(appendName(dst, "engine_ids"), d.EngineIDs...)
	}
	return append(appendVisitor(dst, d.Visitor), '}')
}

// AppendDecisionItem appends {"position":…,"item_id":…,"variant_id"?:…}.
func AppendDecisionItem(dst []byte, item *DecisionItem) []byte {
	dst = append(dst, `{"position":`...)
	dst = strconv.AppendInt(dst, int64(item.Position), 10)
	dst = appendMember(dst, "item_id", string(item.ItemID))
	dst = appendMember(dst, "variant_id", string(item.VariantID))
	return append(dst, '}')
}

// DecodeDecision reads a Decision, with the errors of DecodeRecord. The Decision may alias b, which must not
// change.
func DecodeDecision(b []byte) (*Decision, error) {
	d, err := decodeDecision(b)
	if err != nil {
		return nil, err
	}
	if d.DecisionID == "" || d.ConnectionID == "" || d.ServedAt.IsZero() {
		return nil, errors.New("signal: decision without id, connection or time")
	}
	d.ServedAt = d.ServedAt.UTC()
	return d, nil
}

func decodeDecision(b []byte) (*Decision, error) {
	if d, ok := newReader(b).readDecision(); ok {
		return &d, nil
	}
	return unmarshalDecision(b)
}

// unmarshalDecision reads any form of a Decision.
func unmarshalDecision(b []byte) (*Decision, error) {
	var in struct {
		Schema int `json:"schema"`
		Decision
	}
	err := decode(b, &in, &in.Schema, newestDecision)
	return &in.Decision, err
}
