package intake

import (
	"slices"

	"storefront.internal/shared/signal"
)

// What can be wrong with a field (contract, section 2 "Operation 1, per element").
const (
	missing    = "missing_"
	invalid    = "invalid_"
	unexpected = "unexpected_"
)

// fieldReasons holds the three reasons of a field.
type fieldReasons struct {
	missing, invalid, unexpected signal.Reason
}

func reasonsOf(field signal.Reason) fieldReasons {
	return fieldReasons{missing: missing + field, invalid: invalid + field, unexpected: unexpected + field}
}

// ruleReasons are the reasons by field, in the order in which the rules are judged. They are joined once.
type ruleReasons [slotOrderExternalID + 1]fieldReasons

func newRuleReasons() *ruleReasons {
	var r ruleReasons
	for at, field := range map[slot]signal.Reason{
		slotSignalID: "signal_id", slotType: "type", slotOccurredAt: "occurred_at", slotDecisionID: "decision_id",
		slotItemID: "item_id", slotVariantID: "variant_id", slotPosition: "position", slotQuantity: "quantity",
		slotOrderExternalID: "order_external_id",
	} {
		r[at] = reasonsOf(field)
	}
	return &r
}

// Reasons returns the closed set of reasons, as the OpenAPI document lists it, sorted.
func Reasons() []signal.Reason {
	set := []signal.Reason{signal.InvalidSignal, signal.UnknownDecision}
	r := newRuleReasons()
	for at := slotSignalID; at <= slotOrderExternalID; at++ {
		set = append(set, r[at].invalid)
		switch at {
		case slotSignalID, slotType, slotOccurredAt, slotDecisionID:
			set = append(set, r[at].missing)
		case slotItemID, slotQuantity:
			set = append(set, r[at].missing, r[at].unexpected)
		case slotOrderExternalID:
			set = append(set, r[at].unexpected)
		}
	}
	slices.Sort(set)
	return set
}
