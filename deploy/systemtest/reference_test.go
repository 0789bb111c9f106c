package systemtest

import (
	"slices"
	"strings"

	"storefront.internal/deploy/stack/client"
)

// cartLines folds signals in the simplest way: all signals of a line in the order of their instants. It
// shares nothing with the production code.
func cartLines(signals map[string]client.Signal) map[lineKey]int {
	ordered := make([]client.Signal, 0, len(signals))
	for _, s := range signals {
		ordered = append(ordered, s)
	}
	slices.SortFunc(ordered,
		func(a, b client.Signal) int { return strings.Compare(a.OccurredAt, b.OccurredAt) })
	lines := map[lineKey]int{}
	for _, s := range ordered {
		key := lineKey{s.DecisionID, s.ItemID, s.VariantID}
		switch s.Type {
		case "add_to_cart":
			n := 1
			if s.Quantity != nil {
				n = *s.Quantity
			}
			lines[key] = min(lines[key]+n, 1_000_000)
		case "update_quantity":
			lines[key] = *s.Quantity
		case "remove_from_cart":
			lines[key] = 0
		}
	}
	return lines
}
