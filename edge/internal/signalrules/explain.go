package signalrules

import (
	"fmt"
	"strings"

	"storefront.internal/edge/internal/signaljson"
	"storefront.internal/shared/ident"
	"storefront.internal/shared/signal"
)

// Finding is a rule that an element breaks, or a field that would be discarded.
type Finding struct {
	Code   string // a signal.Reason, discarded_visitor or discarded_client
	Member string // the member of the element; "" for the element itself
	Rule   string // a sentence
}

// Explain returns every rule that the element breaks, in the order in which Validate checks them, and then
// the fields that would be discarded. A rule that depends on another broken one is left out: without a type,
// it is not known whether item_id is needed.
func (v *Validator) Explain(e *signaljson.Element, out *Result) (all []Finding) {
	if !e.IsObject() {
		return []Finding{finding(signal.InvalidSignal)}
	}
	v.element, v.out = e, out
	broken := [signaljson.OrderExternalID + 1]bool{}
	for _, rule := range [...]struct {
		check         func(*Validator) signal.Reason
		member, needs signaljson.Member // needs: the zero value for a rule that stands alone
	}{
		{check: (*Validator).signalID, member: signaljson.SignalID},
		{check: (*Validator).signalType, member: signaljson.Type},
		{check: (*Validator).occurredAt, member: signaljson.OccurredAt},
		{check: (*Validator).decisionID, member: signaljson.DecisionID},
		{check: (*Validator).itemID, member: signaljson.ItemID, needs: signaljson.Type},
		{check: (*Validator).variantID, member: signaljson.VariantID},
		{check: (*Validator).position, member: signaljson.Position},
		{check: (*Validator).quantity, member: signaljson.Quantity, needs: signaljson.Type},
		{check: (*Validator).orderExternalID, member: signaljson.OrderExternalID, needs: signaljson.Type},
		{check: (*Validator).ownDecision, member: signaljson.DecisionID, needs: signaljson.DecisionID},
	} {
		if broken[rule.needs] {
			continue
		}
		if reason := rule.check(v); reason != "" {
			broken[rule.member] = true
			all = append(all, finding(reason))
		}
	}
	v.visitor()
	v.client()
	return append(all, discarded(out)...)
}

func discarded(out *Result) (all []Finding) {
	if out.DiscardedVisitor {
		all = append(all, discardedMember("visitor"))
	}
	if out.DiscardedClient {
		all = append(all, discardedMember("client"))
	}
	return all
}

func discardedMember(name string) Finding {
	return Finding{Code: "discarded_" + name, Member: name,
		Rule: fmt.Sprintf("`%s` is malformed. The signal is recorded without it.", name)}
}

func finding(r signal.Reason) Finding {
	f := Finding{Code: string(r), Rule: sentence(r)}
	switch r {
	case signal.InvalidSignal:
	case signal.UnknownDecision:
		f.Member = "decision_id"
	default:
		_, f.Member, _ = strings.Cut(string(r), "_")
	}
	return f
}

// sentence returns the rule that a reason names.
func sentence(r signal.Reason) string {
	switch r {
	case signal.InvalidSignal:
		return "An element must be an object."
	case signal.UnknownDecision:
		return "`decision_id` must be of a recommendation that was served to this connection."
	case "invalid_type":
		return "`type` must be one of " + typeNames() + "."
	case "invalid_occurred_at":
		return "`occurred_at` must be an RFC 3339 time with a zone, of the years 2000 to 2099."
	case "invalid_position":
		return fmt.Sprintf("`position` must be an integer from 0 to %d.", maxPosition)
	case "invalid_quantity":
		return fmt.Sprintf("`quantity` must be an integer from 1 (0 for update_quantity) to %d.", maxQuantity)
	case "invalid_order_external_id":
		return fmt.Sprintf("`order_external_id` must be a text of 1 to %d characters.", maxOrderExternalID)
	case "missing_item_id":
		return "`item_id` is required unless `type` is impression."
	case "missing_quantity":
		return "`quantity` is required when `type` is update_quantity."
	case "unexpected_item_id":
		return "`item_id` is not allowed when `type` is impression."
	case "unexpected_quantity":
		return "`quantity` is allowed when `type` is add_to_cart, update_quantity or purchase."
	case "unexpected_order_external_id":
		return "`order_external_id` is allowed when `type` is purchase."
	}
	kind, member, _ := strings.Cut(string(r), "_")
	if kind == "missing" {
		return fmt.Sprintf("`%s` is required.", member)
	}
	return fmt.Sprintf("`%s` must be %s_ and 1 to 64 characters of A-Z a-z 0-9 _ -.", member, prefix(member))
}

func typeNames() string {
	var names []string
	for _, t := range signal.Types() {
		names = append(names, string(t))
	}
	return strings.Join(names, ", ")
}

// prefix returns the prefix of a member's identifier.
func prefix(member string) ident.Prefix {
	switch member {
	case "decision_id":
		return ident.Decision
	case "item_id":
		return ident.Item
	case "variant_id":
		return ident.Variant
	}
	return ident.Signal
}
