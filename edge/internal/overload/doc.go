// Package overload owns how much an edge has in work at once. A fixed number of requests works, about as many wait for
// a turn, and what is over is refused at once: a longer queue would only make everybody late.
//
//	room ──────────────▶ works ──leave──▶ the dearest that waits, the oldest of them first
//	full ──▶ waits ────────▲
//	  │        └─ longer than its patience, or displaced by a dearer one ──▶ refused
//	  └─ the queue is full of what is as dear, or the wait is foreseen to be longer than the patience ──▶ refused
//
// Whole batches are dear or not: those of impressions only are given up first, those with a cart signal or a purchase
// last. It refuses to know HTTP and quotas: to be refused here says nothing of the client.
package overload
