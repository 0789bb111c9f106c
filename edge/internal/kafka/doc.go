// Package kafka owns what the edge does with Kafka beside shared/stream: creating the topics, and recording
// served Decisions in the background. Signals go through shared/stream's Producer directly.
package kafka
