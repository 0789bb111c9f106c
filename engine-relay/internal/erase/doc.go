// Package erase owns the erasure of personal data in the relay's tables: it executes the requests that
// control and the sink write into relay.erasures. A request is about a visitor, the buyer of an order, or all
// visitors of a connection.
//
//	claim ─▶ wait for running sinks that have not seen the request ─▶ queued and dead-lettered bodies
//	      ─▶ orders: request the erasure of their visitors ─▶ Decisions
//	      ─▶ signals and the audit of their requests ─▶ parked records
//	      ─▶ wait until no worker sends an older body ─▶ completed
//
// An erasure covers what was stored before its instant, or accepted by the edge before it; later data of the
// same visitor stays. The sink redacts records that are still in Kafka; it applies the requests for ever.
// Signals, their counts and cart lines stay.
//
// The work is done in chunks of one transaction each, which may be repeated: when a relay ends, another
// claims the request later, starts again and finds nothing where the first was done.
//
// An erasure is complete when storefront_relay_erasures_pending is 0 again, or when its row has completed_at.
// That needs a running relay, but no engine. What the engine received is the engine's to erase; Kafka's
// topics drop it by their retention. Logs and metrics hold no id of a visitor or an order.
package erase
