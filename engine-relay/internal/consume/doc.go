// Package consume owns the way from the topics to the sink: it gathers what the partitions of a generation bring into
// loads of a transaction's size, gives them to one or two sink workers, and says which fetched batches lie whole in
// the store or parked.
//
//	fetchers ──▶ gather ──▶ worker ──▶ record.Record ──▶ Done
//	                └─────▶ worker ──▶ record.Record ──▶ Done
//
// A load leaves a short while after its first record came, sooner when it is full; while the workers are busy it grows.
// A record of a newer schema version halts its partition, and that alone, until another relay reads it: nothing of it
// is skipped.
//
// The package refuses to look into records (package record does) and to talk to Kafka (package stream of shared does).
package consume
