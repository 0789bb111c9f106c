// Package erase owns how the relay forgets shoppers (contract, section 3, E9): it takes up the requests that control
// writes down, and takes a visitor, and whatever else identifies them, out of everything that lies stored.
//
//	claim ─▶ outlast the sinks that have not seen the request ─▶ orders: whose visitors they name
//	      ─▶ bodies that wait or are dead ─▶ Decisions ─▶ signals and the audit of their requests
//	      ─▶ parked records ─▶ until nobody sends an older body ─▶ completed
//
// What is stored before, or was accepted before, the instant of the request is forgotten; what the same visitor does
// later is not. Records that are still in Kafka are stripped by the sink, which knows the requests for ever.
//
// Work is done in chunks, each a transaction, and each may be done again: a relay that dies is replaced when its claim
// ends, by one that begins anew and finds what was done gone. Signals, their counts and cart lines stay.
//
// To erase a shopper, an operator calls E9 with their visitor id. It is done when storefront_relay_erasures_pending is 0
// again, or when the row of relay.erasures has its completed_at; a relay has to run, an engine has not. What the engine
// was told is the engine's to forget, and the topics of Kafka forget with their retention.
//
// The package refuses to log or measure an id, and to know SQL.
package erase
