package signalrules

import (
	"slices"

	"storefront.internal/edge/internal/signaljson"
	"storefront.internal/shared/signal"
)

// fieldReasons are the reasons that name a field.
type fieldReasons struct{ missing, invalid, unexpected signal.Reason }

// reasonTable holds the reasons by field. They are joined once.
type reasonTable [signaljson.OrderExternalID + 1]fieldReasons

func newReasonTable() *reasonTable {
	var table reasonTable
	for m, field := range map[signaljson.Member]signal.Reason{
		signaljson.SignalID: "signal_id", signaljson.Type: "type", signaljson.OccurredAt: "occurred_at",
		signaljson.DecisionID: "decision_id", signaljson.ItemID: "item_id",
		signaljson.VariantID: "variant_id",
		signaljson.Position:  "position", signaljson.Quantity: "quantity",
		signaljson.OrderExternalID: "order_external_id",
	} {
		table[m] = fieldReasons{missing: "missing_" + field, invalid: "invalid_" + field,
			unexpected: "unexpected_" + field}
	}
	return &table
}

// Reasons returns the closed set of reasons, as the OpenAPI document lists it, sorted.
func Reasons() []signal.Reason {
	set := []signal.Reason{signal.InvalidSignal, signal.UnknownDecision}
	table := newReasonTable()
	for m := signaljson.SignalID; m <= signaljson.OrderExternalID; m++ {
		set = append(set, table[m].invalid)
		switch m {
		case signaljson.SignalID, signaljson.Type, signaljson.OccurredAt, signaljson.DecisionID:
			set = append(set, table[m].missing)
		case signaljson.ItemID, signaljson.Quantity:
			set = append(set, table[m].missing, table[m].unexpected)
		case signaljson.OrderExternalID:
			set = append(set, table[m].unexpected)
		}
	}
	slices.Sort(set)
	return set
}
