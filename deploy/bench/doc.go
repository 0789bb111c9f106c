// Package bench measures whole services: the real binaries on real PostgreSQL, Redis and Kafka, `make bench`. It has benchmarks
// only and prints a table at the end. A machine's figures say little; what counts is the ratio between cases that took turns in
// one run.
package bench
