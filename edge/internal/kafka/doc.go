// Package kafka owns the edge's way into Kafka: the topics that it makes sure of, and the recorder that passes served
// Decisions on without being waited for. Signals go through shared/stream's Producer as it is.
package kafka
