// Package consumer owns the way from the topics to the sink: it gathers the records of all partitions of a
// generation into batches of a transaction's size, gives them to the sink's workers, and commits the offsets
// of fetched batches that are completely stored or parked.
//
//	fetchers ──▶ gather ──▶ worker ──▶ sink.Writer ──▶ Done
//	                └─────▶ worker ──▶ sink.Writer ──▶ Done
//
// A batch leaves a short time after its first record came, sooner when it is full; while all workers are busy
// it grows. A record of a newer schema version halts its partition, and only that one, until a newer relay
// reads it: no record is skipped. Package stream of shared talks to Kafka, package sink decodes records.
package consumer
