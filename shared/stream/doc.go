// Package stream owns the way through Kafka: the topics, the batching producer, and the consumer of a group
// with its lag.
//
// A Producer answers each record with Acknowledged, Refused (it was never handed to the transport, and never
// will be) or Unknown. It is built on kafka-go's Client.Produce, since kafka-go's Writer may deliver a record
// after it reported an error, and queues without bound. A Consumer hands out batches of one generation of its
// group and commits through that generation only, so a member that lost a partition cannot move its offset.
// When the broker no longer has an offset, the Consumer stops.
//
// Records have no keys, since no reader depends on the order across requests: a flush goes to any partition,
// and records that the leader of one does not acknowledge in time go to another leader, at most once.
// There are no Kafka transactions, since PostgreSQL keeps records unique.
package stream

// The topics. The version is part of the name and changes only when old readers cannot read new records.
const (
	TopicSignals   = "storefront.signals.v1"
	TopicDecisions = "storefront.decisions.v1"
)
