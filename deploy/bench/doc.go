// Package bench measures whole services: the real binaries on a real PostgreSQL, Redis and Kafka (`make
// bench`). It has only benchmarks, and prints a table at the end. The figures of one machine say little; what
// counts is the ratio between cases that took turns in one run.
package bench
