// Package intake owns the use case of operation 1, "Record storefront signals": strict decoding, the rules of each
// element, the claims, the hand-off to Kafka, the confirmation (contract, section 2 "Operation 1, per element").
//
// A request goes through five steps, and each file holds one of them:
//
//	scan*.go, decode.go    body bytes → elements, or a 400 or 422 of the whole body
//	rules.go, client.go …  element → Signal, or the reason why it is rejected
//	claims.go, acquire.go  which of the sound ones are new: the claim protocol over single-key Redis commands
//	record.go, service.go  one Kafka record per request; acknowledged → done → 202, anything else → released → 503
//	marker.go              registers that could not be written at once are written in the background
//
// The package refuses to know HTTP, Redis, Kafka and PostgreSQL: it declares the interfaces that it needs. It refuses
// to say "duplicate" of a signal that is not known to be recorded (a client would throw it away), and to say
// "accepted" of one that Kafka did not acknowledge.
package intake
