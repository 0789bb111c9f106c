// Package overload owns the limit on how many requests an edge handles at once. A fixed number is in flight,
// about as many wait for a permit, and the rest is refused at once, because a longer queue only makes every
// answer late.
//
//	free permit ─▶ in flight ──Release──▶ the oldest waiter of the highest priority
//	none free ──▶ waits ────────▲
//	  │             └─ longer than MaxWait ──▶ refused
//	  └─ the queue's share for this priority is full ──▶ refused
//
// Priority is per batch: a batch of impressions only, and a dry run, are sheddable, one with a cart
// signal or a purchase is critical. A sheddable request may use half of the queue, a normal one three
// quarters, a critical one all of it; so critical requests find a place without evicting anything.
// TestSimulatedOverload compares this with a plain semaphore.
package overload
