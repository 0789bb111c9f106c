// Package deliveries owns schema delivery: the queue of what goes to the engine (contract, section 4), its counts and
// its dead. engine-relay enqueues interactions in the transaction that stores their signals, and delivers; control
// enqueues envelopes and shows the queue. The package refuses to know HTTP, what a body says, and how long to wait
// after which answer: package deliver of engine-relay decides that and tells Settle.
//
// A delivery's way:
//
//	Enqueue ──▶ waiting ──Take──▶ in flight ──Settle──▶ gone (created, exists)
//	               ▲                 │  │  │
//	               ├──not sent, 401──┘  │  └──rejected, refused alone, given up──▶ dead ──Replay──▶ waiting
//	               ├──failed (back-off of the lane, later alone in the lane's aside)
//	               └──unconfirmed: sent and not answered, or its lease expired; goes first, same bytes
//
// A lane (connection, kind, hash of the Decision) is leased by one worker at a time. The lease's fence is named by
// every change that follows, so a worker that slept through its lease changes nothing. What a worker is about to send
// is written down as the lane's flight before it is sent, with the bodies frozen: whatever happens then, the same
// delivery has the same bytes, and a delivery that may have arrived is known as unconfirmed until an answer says so.
//
// Enqueue takes no lock and knows no lane row. It appends deltas; the compactor folds them into counts and wakes the
// lanes. A lane goes to sleep only when its row is locked and a statement begun after that finds it empty, and the
// compactor locks the row too before it looks whether to wake it: so no wake-up is lost.
package deliveries
