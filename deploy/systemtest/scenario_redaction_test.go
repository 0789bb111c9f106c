package systemtest

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"storefront.internal/deploy/fakeprovider/fake"
	"storefront.internal/shared/testkit"
)

// A platform asks to redact a customer: the order that it names is archived by then, and so is the purchase of whoever bought
// it. In the end nothing of the buyer is left, nor of the visitor, and the order does not come back when it is told of again.
// Then the shop itself is redacted, and a data request waits for an operator.
func TestABuyerIsRedacted(t *testing.T) {
	t.Parallel()
	p := newPlatform(t, fake.Config{Products: 20, Orders: 3, Unthrottled: true})
	x := newTopology(t, p.configure)
	p.deliversTo(x)
	edge := x.edge()
	x.relay()
	s := x.opens(p)
	s.loaded()
	check(t, s.subscribed())
	const order, other = "500001", "500002"
	s.announce(webhook{Topic: "order/created", ExternalID: order}, http.StatusAccepted)
	s.announce(webhook{Topic: "order/created", ExternalID: other}, http.StatusAccepted)
	s.holds("buyer-"+order+"@mail.example", true)
	s.holds("buyer-"+other+"@mail.example", true)
	buyer := newShopper(s.shop)
	buyer.visit(edge, buyer.recommend(edge), 3)
	buyer.buys(edge, order)
	x.stored(t, s.shop, 4)

	const customer = `"customer":{"id":1,"email":"who@mail.example","phone":"+54 11 50000000","identification":"00000000"}`
	s.asks("customers/data_request", customer+`,"orders_requested":[`+order+`]`)
	s.asks("customers/redact", customer+`,"orders_to_redact":[`+order+`]`)
	for _, gone := range append(buyer.traces(), "buyer-"+order+"@mail.example", "who@mail.example") {
		s.holds(gone, false)
	}
	s.holds("buyer-"+other+"@mail.example", true)
	s.announce(webhook{Topic: "order/updated", ExternalID: order}, http.StatusAccepted)
	s.announce(webhook{Topic: "order/updated", ExternalID: other}, http.StatusAccepted)

	s.asks("store/redact", "")
	s.holds("mail.example", false)
	x.erased(t)
	if n := x.number("SELECT count(*)::int FROM control.privacy_requests WHERE completed_at IS NULL AND kind = 'data_request'"); n != 1 {
		t.Errorf("%d data requests wait for an operator", n)
	}
}

// asks makes a privacy request of the platform, which goes to the address of the app and not to a subscription's.
func (s *store) asks(topic, members string) {
	s.t.Helper()
	body := []byte(`{"store_id":` + s.id + strings.TrimSuffix(","+members, ",") + `}`)
	if status, text := s.hand("/"+s.brand.name+"/"+s.installed.EndpointID, sign(body), body, topic); status != http.StatusAccepted {
		s.t.Errorf("%s: %d %s", topic, status, text)
	}
}

// holds waits until the text is in the database, or is not.
func (s *store) holds(text string, want bool) {
	s.t.Helper()
	eventually(s.t, 120*time.Second, text, func() error {
		if tables := testkit.Holding(s.t, s.x.pool, text); (len(tables) > 0) != want {
			return fmt.Errorf("it is in %v", tables)
		}
		return nil
	})
}

// buys sends the purchase that names an order.
func (s *shopper) buys(edge *node, order string) {
	s.t.Helper()
	type purchase struct {
		signal
		Order string `json:"order_external_id"`
	}
	one := cartBatch(s.recommend(edge), 1)[0]
	one.Type, one.Quantity, one.Visitor = "purchase", new(1), visitor{s.id, s.session}
	if a := s.must(edge, []purchase{{one, order}}); a.count("accepted") != 1 {
		s.t.Errorf("a purchase: %+v", a)
	}
}
