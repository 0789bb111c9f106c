package postgres_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"storefront.internal/engine-relay/internal/sink"
	"storefront.internal/shared/ident"
	"storefront.internal/shared/signal"
)

// played is the contract's sentence about cart lines, written apart from package cart: all signals of the
// line in the order in which the shopper acted.
func played(signals []signal.Recorded) int32 {
	line := int32(0)
	for len(signals) > 0 {
		first := 0
		for i := range signals {
			a, b := signals[i], signals[first]
			if a.OccurredAt.Before(b.OccurredAt) ||
				a.OccurredAt.Equal(b.OccurredAt) &&
					(a.Index < b.Index || a.Index == b.Index && a.ID < b.ID) {
				first = i
			}
		}
		switch s := signals[first].Signal; s.Type {
		case signal.AddToCart:
			line += *s.Quantity
		case signal.UpdateQuantity:
			line = *s.Quantity
		case signal.RemoveFromCart:
			line = 0
		}
		signals = append(signals[:first:first], signals[first+1:]...)
	}
	return line
}

// TestTwoRelaysFoldTheSameLines gives two sinks the same records in different orders and portions, as
// rebalances and redeliveries do. The lines equal the model, each signal counts once, and no transaction
// waited for one another in a circle.
func TestTwoRelaysFoldTheSameLines(t *testing.T) {
	t.Parallel()
	b := setup(t)
	kinds := []signal.Type{
		signal.AddToCart,
		signal.AddToCart,
		signal.UpdateQuantity,
		signal.RemoveFromCart,
		signal.Click,
	}
	items := []ident.ItemID{"itm_1", "itm_2", "itm_3", "itm_4", "itm_5"}
	perLine := map[ident.ItemID][]signal.Recorded{}
	var messages []sink.Message
	for n := range 150 {
		var signals []signal.Signal
		for i := range 6 {
			s := act(fmt.Sprintf("%03d_%d", n, i), kinds[rand.IntN(len(kinds))], int32(1+rand.IntN(5)))
			s.ItemID, s.OccurredAt = items[rand.IntN(len(items))], epoch.Add(
				-time.Duration(rand.IntN(300))*time.Second,
			)
			signals = append(signals, s)
		}
		r := request(signals...)
		for _, s := range r.Signals {
			perLine[s.ItemID] = append(perLine[s.ItemID], s)
		}
		messages = append(
			messages,
			signalsOf(r),
			decision(ident.DecisionID(fmt.Sprintf("dec_%d", n%20)), "", items...),
		)
	}
	var wg sync.WaitGroup
	var failed atomic.Int64
	for range 2 {
		for range 2 {
			mine := append([]sink.Message(nil), messages...)
			rand.Shuffle(len(mine), func(i, j int) { mine[i], mine[j] = mine[j], mine[i] })
			wg.Go(func() { inPortions(t, b, mine, &failed) })
		}
	}
	wg.Wait()
	expect(t, "signals", b.count(t, "relay.signals"), 900)
	expect(t, "deliveries", b.count(t, "delivery.entries"), 900)
	expect(t, "audits", b.count(t, "relay.audit"), 150)
	expect(t, "decisions", b.count(t, "relay.decisions"), 20)
	for item, signals := range perLine {
		folds := 0
		for _, s := range signals {
			if s.Type.Cart() {
				folds++
			}
		}
		expect(t, string(item), b.line(t, string(item)), fmt.Sprintf("%d rev %d", played(signals), folds))
	}
	expect(
		t,
		"revisions delivered twice",
		b.count(
			t,
			`(SELECT body::text FROM (SELECT convert_from(body, 'UTF8')::json #>> '{cart_line,item_id}' AS item,
		convert_from(body, 'UTF8')::json #>> '{cart_line,revision}' AS body FROM delivery.entries) AS l WHERE item IS NOT NULL
		GROUP BY item, body HAVING count(*) > 1) AS twice`,
		),
		0,
	)
	expect(t, "transactions that failed (a deadlock is one)", failed.Load(), 0)
}

// inPortions stores the messages with a sink of its own, some at a time.
func inPortions(t *testing.T, b *bundle, messages []sink.Message, failed *atomic.Int64) {
	r := writerThat(b.store, func() { failed.Add(1) })
	for len(messages) > 0 {
		n := min(1+rand.IntN(60), len(messages))
		if err := r.Write(t.Context(), gather(t, messages[:n]...)); err != nil {
			t.Error(err)
			return
		}
		messages = messages[n:]
	}
}
