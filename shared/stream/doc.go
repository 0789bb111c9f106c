// Package stream is the way through Kafka: the topics, the batching producer and the consumer of a group.
//
// A Producer answers with one of three outcomes, and never delivers a record after it said Refused. It is written over kafka-go's Client.Produce, since Writer delivers after it reported an
// error, queues without bound and lingers. A Consumer hands out batches per generation of its group and commits through that generation only, so that a member that lost a partition cannot
// move its offset; an offset that the broker no longer has halts it.
//
// It refuses keys (a flush goes to one partition in turn; order over requests means nothing here), transactions (the sink is unique in PostgreSQL), and knowing what is in a record.
package stream

// The topics. The version is part of the name and changes only when old readers cannot read new records.
const (
	TopicSignals   = "storefront.signals.v1"
	TopicDecisions = "storefront.decisions.v1"
)
