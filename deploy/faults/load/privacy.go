package load

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"storefront.internal/deploy/fakeprovider/catalogue"
	"storefront.internal/deploy/faults/recording"
	"storefront.internal/deploy/load"
)

// orders is the number of orders of the shop that the merchant announces.
const orders = 40

// eraseVisitors sends a signal of a new visitor and erases the visitor at once, while the signal may still be
// on its way to PostgreSQL.
func (l *Load) eraseVisitors(ctx context.Context, client recording.Client, random *rand.Rand) {
	for l.pause(ctx, jitter(random, 1500*time.Millisecond)) {
		c := l.connections[random.IntN(len(l.connections))]
		s := c.newSignal(random, 0)
		s.Visitor.VisitorID, s.VisitorErased = "vis_"+load.RandomName(random), true
		edge := l.Edges[random.IntN(len(l.Edges))]
		accepted := false
		retry(ctx, random, maxAttempts, func() bool {
			accepted = l.post(ctx, client, c, edge, []recording.Signal{s})
			return accepted
		})
		if !accepted {
			continue
		}
		retry(ctx, random, forever, func() bool {
			return recording.Final(client.EraseVisitor(ctx, c.id, s.Visitor.VisitorID))
		})
	}
}

// redactBuyers announces orders of the shop at the fake provider, and requests the redaction of their buyers.
func (l *Load) redactBuyers(ctx context.Context, c recording.Client, random *rand.Rand) {
	for l.pause(ctx, jitter(random, 2*time.Second)) {
		order := strconv.Itoa(catalogue.FirstOrder + random.IntN(orders))
		retry(ctx, random, forever, func() bool {
			return recording.Final(c.DeliverWebhook(ctx, l.merchant.id, l.merchant.endpoint, order,
				WebhookBody(l.ShopID, "order/created", order)))
		})
		if random.IntN(3) > 0 {
			continue
		}
		body := RedactionBody(l.ShopID, order, "buyer-"+order+"@mail.example")
		retry(ctx, random, forever, func() bool {
			return recording.Final(c.RequestRedaction(ctx, l.merchant.id, l.merchant.endpoint, order, "",
				body))
		})
	}
}

// RedactionBody returns the body of a platform's request to redact a buyer.
func RedactionBody(shopID, order, email string) []byte {
	return fmt.Appendf(nil, `{"store_id":%s,"customer":{"id":%s,"email":%q,"phone":"","identification":""},`+
		`"orders_to_redact":[%s]}`, shopID, order, email, order)
}
