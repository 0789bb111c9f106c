// Package deliveries owns schema delivery: the queue of what goes to the engine, its counts and its dead
// letters. engine-relay enqueues interactions in the transaction that stores their signals, and delivers;
// control enqueues envelopes and serves the queue view. Package deliver of engine-relay decides about HTTP,
// answers and waiting times.
//
// The way of a delivery:
//
//	Enqueue ──▶ waiting ──Lease──▶ in flight ──Complete──▶ gone (created, exists)
//	               ▲                 │  │  │
//	               ├──not sent, 401──┘  │  └──rejected, refused alone, given up──▶ dead letter
//	               ├──failed (the lane waits; after that the entry waits alone in the retry lane)
//	               ├──unconfirmed: sent without an answer, or the lease expired; goes first, unchanged
//	               └──ReplayDead of a dead letter
//
// A lane (connection, kind, hash of the Decision) is leased by one worker at a time. Lease leases lanes until
// a request is full: one busy lane, or hundreds with an entry each. A lane whose entries were sent before
// goes alone. Each later change names the lease's fence, so a worker whose lease expired changes nothing.
// Before a worker sends entries, the lane's row lists them as in flight and their bodies are frozen: a
// delivery keeps its bytes, and one that may have arrived is known as unconfirmed until an answer comes.
// Redaction is the exception: it removes personal data from bodies.
//
// The package knows two things of a body. An interaction that awaits its Decision gets the member engine_ids
// from relay.decisions, a table of engine-relay, when it is first leased; and Redaction passes bodies to a
// function.
//
// Enqueue takes no lock and does not touch the lanes. It appends deltas; Compact folds them into counts and
// wakes the lanes. A lane is put to sleep only under its row lock, by a statement that began after the lock
// and found it empty. Compact locks the row before it decides whether to wake it. So no wake-up is lost.
package deliveries
