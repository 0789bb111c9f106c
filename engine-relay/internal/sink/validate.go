package sink

import (
	"math"

	"storefront.internal/engine-relay/internal/cart"
	"storefront.internal/shared/ident"
	"storefront.internal/shared/signal"
)

// The edge has validated every element. Since any program can produce into a topic, the sink checks again
// what it relies on: keys, folds, and the text of deliveries.

func validRecord(r *signal.Record) bool {
	return ident.Valid(ident.Connection, string(r.ConnectionID)) &&
		ident.Valid(ident.Store, string(r.StoreID))
}

func validDecision(d *signal.Decision) bool {
	for _, item := range d.Items {
		if !ident.Valid(ident.Item, string(item.ItemID)) || item.VariantID != "" &&
			!ident.Valid(ident.Variant, string(item.VariantID)) {
			return false
		}
	}
	return ident.Valid(ident.Connection, string(d.ConnectionID)) &&
		ident.Valid(ident.Store, string(d.StoreID)) &&
		ident.Valid(ident.Decision, string(d.DecisionID))
}

func validSignalID(s *signal.Signal) bool { return ident.Valid(ident.Signal, string(s.ID)) }

func validSignal(r *signal.Recorded) bool {
	s := &r.Signal
	_, known := signal.ParseType([]byte(s.Type))
	return known && validSignalID(s) && r.Index >= 0 && r.Index <= math.MaxInt16 && !s.OccurredAt.IsZero() &&
		ident.Valid(ident.Decision, string(s.DecisionID)) &&
		(s.ItemID == "" && !s.Type.Cart() || ident.Valid(ident.Item, string(s.ItemID))) &&
		(s.VariantID == "" || ident.Valid(ident.Variant, string(s.VariantID))) &&
		(s.Quantity == nil || *s.Quantity >= 0 && *s.Quantity <= cart.MaxQuantity)
}
