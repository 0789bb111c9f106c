package systemtest

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"storefront.internal/deploy/fakeprovider/fake"
	"storefront.internal/deploy/stack"
	"storefront.internal/deploy/stack/client"
	"storefront.internal/shared/testkit"
)

// A platform requests the redaction of a customer whose order is archived and whose visitor is known by the
// purchase. Nothing of the buyer or the visitor is left, and the order does not come back with a later
// webhook. Then the shop itself is redacted, and a data request waits for an operator.
func TestABuyerIsRedacted(t *testing.T) {
	t.Parallel()
	p := newPlatform(t, fake.Config{Products: 20, Orders: 3, Unthrottled: true})
	x := newDeployment(t, p.configure)
	p.deliverTo(x)
	edge := x.edge()
	x.relay()
	s := x.installShop(p)
	s.loaded()
	check(t, s.subscribed())
	const order, other = "500001", "500002"
	s.announce(webhook{Topic: "order/created", ExternalID: order}, http.StatusAccepted)
	s.announce(webhook{Topic: "order/created", ExternalID: other}, http.StatusAccepted)
	s.awaitText("buyer-"+order+"@mail.example", true)
	s.awaitText("buyer-"+other+"@mail.example", true)
	buyer := newShopper(s.storefront)
	buyer.visit(edge, buyer.recommend(edge), 3)
	buyer.buys(edge, order)
	x.awaitStored(t, s.storefront, 4)

	const customer = `"customer":{"id":1,"email":"who@mail.example","phone":"+54 11 50000000",` +
		`"identification":"00000000"}`
	s.requestPrivacy("customers/data_request", customer+`,"orders_requested":[`+order+`]`)
	s.requestPrivacy("customers/redact", customer+`,"orders_to_redact":[`+order+`]`)
	for _, gone := range append(buyer.traces(), "buyer-"+order+"@mail.example", "who@mail.example") {
		s.awaitText(gone, false)
	}
	s.awaitText("buyer-"+other+"@mail.example", true)
	s.announce(webhook{Topic: "order/updated", ExternalID: order}, http.StatusAccepted)
	s.announce(webhook{Topic: "order/updated", ExternalID: other}, http.StatusAccepted)

	s.requestPrivacy("store/redact", "")
	s.awaitText("mail.example", false)
	x.awaitErased(t)
	if n := x.number("SELECT count(*)::int FROM control.privacy_requests WHERE completed_at IS NULL AND " +
		"kind = 'data_request'"); n != 1 {
		t.Errorf("%d data requests wait for an operator", n)
	}
}

// requestPrivacy sends a privacy request of the platform, which goes to the app's address instead of a
// subscription's.
func (s *shop) requestPrivacy(topic, members string) {
	s.t.Helper()
	body := []byte(`{"store_id":` + s.id + strings.TrimSuffix(","+members, ",") + `}`)
	if status, text := s.deliverWebhook("/"+s.provider.name+"/"+s.installed.EndpointID, sign(body), body,
		topic); status != http.StatusAccepted {
		s.t.Errorf("%s: %d %s", topic, status, text)
	}
}

// awaitText waits until a text is in the database, or is not.
func (s *shop) awaitText(text string, want bool) {
	s.t.Helper()
	eventually(s.t, 120*time.Second, text, func() error {
		if tables := testkit.TablesContaining(s.t, s.x.pool, text); (len(tables) > 0) != want {
			return fmt.Errorf("it is in %v", tables)
		}
		return nil
	})
}

// buys sends the purchase that names an order.
func (s *shopper) buys(edge *stack.Process, order string) {
	s.t.Helper()
	one := cartBatch(s.recommend(edge), 1)[0]
	one.Type, one.Quantity, one.Visitor, one.OrderID = "purchase", new(1), s.visitor, order
	if a := s.must(edge, []client.Signal{one}); a.count("accepted") != 1 {
		s.t.Errorf("a purchase: %+v", a)
	}
}
