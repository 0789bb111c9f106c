package payload

import (
	"encoding/json"

	"storefront.internal/control/internal/provider"
)

// Privacy are the members of the requests about personal data. Both platforms that send such requests name
// their kind only in a header, which no signature covers, so the signed members decide: orders_to_redact is
// of a redaction, orders_requested and data_request are of a data request.
type Privacy struct {
	Customer    Customer         `json:"customer"`
	Redact      *List[ID]        `json:"orders_to_redact"`
	Requested   *List[ID]        `json:"orders_requested"`
	DataRequest *json.RawMessage `json:"data_request"`
}

// Request reads the privacy request of a shop, whose topic the header says. ok is false for a body without
// such members under another topic. A body that is no complete privacy request is Unspecified.
func (p *Privacy) Request(shop string, said provider.EventKind) (t provider.WebhookEvent, ok bool) {
	redacts, requests := p.Redact != nil, p.Requested != nil || p.DataRequest != nil
	if !redacts && !requests && !said.IsPrivacy() {
		return provider.WebhookEvent{}, false
	}
	t = provider.WebhookEvent{Kind: provider.Unspecified, ExternalStoreID: shop}
	switch {
	case shop == "" || redacts && requests:
		return t, true
	case redacts:
		t.Kind, t.Orders = provider.RedactCustomer, SetIDs(*p.Redact)
	case requests:
		t.Kind = provider.DataRequest
		if p.Requested != nil {
			t.Orders = SetIDs(*p.Requested)
		}
	case p.Customer.Present == (said != provider.RedactShop): // neither list: the topic decides
		t.Kind = said
	default:
		return t, true
	}
	t.Customer = p.Customer.Customer
	return t, true
}
