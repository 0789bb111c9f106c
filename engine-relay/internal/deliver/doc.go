// Package deliver owns how deliveries go to the engine: what each answer means, how long to wait after it,
// when a batch is split, and when no request is sent at all. Package deliveries owns the queue with its
// leases and counts; package engine owns the HTTP client.
//
// A worker leases lanes until a request is full, of whatever connections, sends their deliveries in one
// request, completes the leases, and takes the next lanes. Deliveries that failed go with those of their own
// lane only. A retry lane holds deliveries that failed twice; each of them goes in a request of its own.
//
// A delivery that the engine refuses when it is sent alone (400, 409, 410, 413, 422) is dead-lettered only
// while the engine accepts others: refusalGuard has the rule. An engine that begins to refuse everything
// costs each relay at most ten deliveries of each kind; the others are kept, and the circuit breaker opens.
//
// Three things stop a worker from sending:
//
//	blocked    the engine answered 401: no worker uses that credential until it changes or an
//	           operator allows a probe
//	breaker    one per call of the engine: it opens after several failures in a row, or at a mass refusal,
//	           and then lets one delivery at a time through, so that an outage does not use up the
//	           attempts of the queue
//	disabled   no engine is configured: the relay only sends heartbeats and folds the counts
package deliver
