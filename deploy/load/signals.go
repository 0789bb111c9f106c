package load

import (
	"encoding/hex"
	"math/rand/v2"
	"time"

	"storefront.internal/deploy/stack/client"
)

// RandomName returns 24 hexadecimal digits that the seed determines.
func RandomName(random *rand.Rand) string {
	var b [12]byte
	for i := range b {
		b[i] = byte(random.Uint32())
	}
	return hex.EncodeToString(b[:])
}

// ValidSignal makes a valid signal of any type about one of the first items of a Decision.
func ValidSignal(random *rand.Rand, d client.Decision, at time.Time) client.Signal {
	item := d.Items[random.IntN(min(3, len(d.Items)))]
	s := client.Signal{ID: "sig_" + RandomName(random), DecisionID: d.ID, ItemID: item.ItemID,
		OccurredAt: client.Timestamp(at)}
	if random.IntN(2) == 0 {
		s.VariantID = item.VariantID
	}
	switch random.IntN(12) {
	case 0:
		s.Type, s.ItemID, s.VariantID = "impression", "", ""
	case 1, 2:
		s.Type, s.Position = "click", new(random.IntN(20))
	case 3:
		s.Type, s.Quantity = "purchase", new(1+random.IntN(5))
	case 4:
		s.Type = "dismiss"
	case 5:
		s.Type = "remove_from_cart"
	case 6, 7:
		s.Type, s.Quantity = "update_quantity", new(random.IntN(6))
	default:
		s.Type = "add_to_cart"
	}
	return s
}

// Violate makes a valid signal violate one rule and returns the reason with which it must be rejected.
func Violate(random *rand.Rand, s *client.Signal) (reason string) {
	switch random.IntN(5) {
	case 0:
		s.OccurredAt = "yesterday"
		return "invalid_occurred_at"
	case 1:
		s.Type = "look"
		return "invalid_type"
	case 2:
		s.DecisionID = ""
		return "missing_decision_id"
	case 3:
		s.Type, s.ItemID, s.VariantID, s.Position, s.Quantity = "impression", "", "", nil, new(2)
		return "unexpected_quantity"
	default:
		s.Type, s.Position, s.Quantity = "update_quantity", nil, new(-1)
		if s.ItemID == "" { // it was an impression
			return "missing_item_id"
		}
		return "invalid_quantity"
	}
}
