// Package kafka owns what the edge does with Kafka beside shared/stream: creating the topics, recording
// served Decisions in the background, and choosing the producer of a connection's signals.
package kafka
