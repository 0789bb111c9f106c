package load

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"storefront.internal/deploy/fakeprovider/catalogue"
	"storefront.internal/deploy/faults/recording"
	"storefront.internal/deploy/load"
	"storefront.internal/deploy/stack/client"
)

// steadyCall is one kind of call that is made at a fixed rate.
type steadyCall struct {
	every time.Duration
	make  func(ctx context.Context, c recording.Client, n int, random *rand.Rand)
}

// steadyCalls are the calls by which package check measures what goes on while a dependency is down.
func (l *Load) steadyCalls() []steadyCall {
	return []steadyCall{
		{50 * time.Millisecond, l.steadySignals},
		{100 * time.Millisecond, l.steadyItem},
		{250 * time.Millisecond, l.steadyRecommend},
		{500 * time.Millisecond, l.steadyObserve},
		{500 * time.Millisecond, l.steadyWebhook},
	}
}

// callSteadily makes a call at each tick, however long the calls before take, and waits for all at the end.
func (l *Load) callSteadily(ctx context.Context, c recording.Client, random *rand.Rand, s steadyCall) {
	c.Steady = true
	var all sync.WaitGroup
	defer all.Wait()
	tick := time.NewTicker(s.every)
	defer tick.Stop()
	for n := 0; ; n++ {
		select {
		case <-l.stopping:
			return
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		own := rand.New(rand.NewPCG(random.Uint64(), random.Uint64())) // not secret
		all.Go(func() { s.make(ctx, c, n, own) })
	}
}

// oldSignal is how long ago the second signal of a steady batch occurred: Redis may have forgotten its claim.
const oldSignal = 50 * time.Minute

// steadySignals sends a new signal and one that is old.
func (l *Load) steadySignals(ctx context.Context, client recording.Client, n int, random *rand.Rand) {
	c := l.connections[n%len(l.connections)]
	l.created.Add(2)
	l.post(ctx, client, c, l.Edges[random.IntN(len(l.Edges))],
		[]recording.Signal{c.newSignal(random, 0), c.newSignal(random, oldSignal)})
}

// newSignal is a signal about the connection's first Decision, which was recorded before the first fault.
func (c *connection) newSignal(random *rand.Rand, age time.Duration) recording.Signal {
	s := recording.Signal{Signal: client.Signal{ID: "sig_" + load.RandomName(random), Type: "dismiss",
		DecisionID: c.first.ID, ItemID: c.first.Items[0].ItemID,
		OccurredAt: client.Timestamp(time.Now().Add(-age))}}
	s.Visitor.VisitorID = c.visitor(s.ID)
	return s
}

// readOften is the number of connections whose items the steady calls read: so few that all of their items
// are in Redis again soon after it lost everything, since only what was read since then can be read while
// PostgreSQL is down.
const readOften = 6

func (l *Load) steadyItem(ctx context.Context, client recording.Client, n int, random *rand.Rand) {
	c := l.connections[n%min(readOften, len(l.connections))]
	if item, ok := c.item(random); ok {
		client.GetItem(ctx, l.Edges[random.IntN(len(l.Edges))], c.id, c.currentKey(), item)
	}
}

func (l *Load) steadyRecommend(ctx context.Context, client recording.Client, n int, random *rand.Rand) {
	l.recommend(ctx, client, l.connections[n%len(l.connections)], l.Edges[random.IntN(len(l.Edges))], random)
}

func (l *Load) steadyObserve(ctx context.Context, client recording.Client, n int, random *rand.Rand) {
	c := l.connections[n%l.Connections]
	l.observe(ctx, client, c, []recording.Observation{
		c.nextRevision("product", fmt.Sprintf("steady%d", random.IntN(3)), random)})
}

func (l *Load) steadyWebhook(ctx context.Context, c recording.Client, _ int, random *rand.Rand) {
	id := fmt.Sprint(catalogue.FirstProduct + random.IntN(l.Products))
	c.DeliverWebhook(ctx, l.merchant.id, l.merchant.endpoint, id,
		WebhookBody(l.ShopID, "product/updated", id))
}
