package signaljson

// Member is a known member of a batch: of its body, of an element, or of an object within an element.
type Member uint8

// The known members. SignalID to OrderExternalID are in the order in which their rules are checked.
const (
	unknown Member = iota
	signals
	SignalID
	Type
	OccurredAt
	DecisionID
	ItemID
	VariantID
	Position
	Quantity
	OrderExternalID
	Visitor
	Client
	VisitorID
	SessionID
	PageURL
	Languages
	Timezone
	Viewport
	Width
	Height
	PixelRatio
	memberCount

	body    // stands for the whole body
	element // stands for an element of signals
)

// parent returns the member whose value is the object that m belongs to: element and body for those that are
// no member's value.
func (m Member) parent() Member {
	switch {
	case m == signals:
		return body
	case m <= Client:
		return element
	case m <= SessionID:
		return Visitor
	case m <= Viewport:
		return Client
	default:
		return Viewport
	}
}

// find returns the known member of that name in an object that is the value of parent. Names match exactly.
func find(parent Member, name string) Member {
	if m := memberNamed(name); m != unknown && m.parent() == parent {
		return m
	}
	return unknown
}

func memberNamed(name string) Member {
	switch name {
	case "signals":
		return signals
	case "signal_id":
		return SignalID
	case "type":
		return Type
	case "occurred_at":
		return OccurredAt
	case "decision_id":
		return DecisionID
	case "item_id":
		return ItemID
	case "variant_id":
		return VariantID
	case "position":
		return Position
	case "quantity":
		return Quantity
	case "order_external_id":
		return OrderExternalID
	case "visitor":
		return Visitor
	case "client":
		return Client
	case "visitor_id":
		return VisitorID
	case "session_id":
		return SessionID
	case "page_url":
		return PageURL
	case "languages":
		return Languages
	case "timezone":
		return Timezone
	case "viewport":
		return Viewport
	case "width":
		return Width
	case "height":
		return Height
	case "pixel_ratio":
		return PixelRatio
	}
	return unknown
}
