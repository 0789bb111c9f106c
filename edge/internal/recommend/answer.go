package recommend

import (
	"time"

	"storefront.internal/shared/ident"
	"storefront.internal/shared/rfc3339"
	"storefront.internal/shared/signal"
)

// Answer is what the storefront gets.
type Answer struct {
	DecisionID ident.DecisionID
	Placement  string
	ServedAt   time.Time
	Source     string
	Items      []signal.DecisionItem
	Cards      []*Card // of the items, nil for one without; empty unless the request asks for them
}

// AppendJSON appends the answer's body. The texts of a Decision need no escapes, because their forms were
// checked.
func (a *Answer) AppendJSON(dst []byte) []byte {
	dst = append(dst, `{"decision_id":"`...)
	dst = append(dst, a.DecisionID...)
	dst = append(dst, `","placement":"`...)
	dst = append(dst, a.Placement...)
	dst = append(dst, `","served_at":"`...)
	dst = rfc3339.Append(dst, a.ServedAt)
	dst = append(dst, `","source":"`...)
	dst = append(dst, a.Source...)
	dst = append(dst, `","items":[`...)
	for i := range a.Items {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = signal.AppendDecisionItem(dst, &a.Items[i])
		if i < len(a.Cards) && a.Cards[i] != nil {
			dst = append(a.Cards[i].appendJSON(dst[:len(dst)-1]), '}') // before the item's brace
		}
	}
	return append(dst, "]}"...)
}
