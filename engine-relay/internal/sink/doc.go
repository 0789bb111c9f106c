// Package sink owns the relay's way from Kafka into PostgreSQL: it turns records into stored signals, cart
// lines, Decisions and queued deliveries, each signal once, a whole batch in one transaction. Package
// consumer reads Kafka and fills the batches.
//
//	records ──Add──▶ Batch ──Write──▶ ledger ─▶ new signals ─▶ signals, audit
//	                   │                                    ├─▶ cart lines, folded
//	                   └─▶ parked: what is not a record     └─▶ deliveries to the engine
//
// The ledger makes storing idempotent, so a batch may come again at any time: after a crash, after a COMMIT
// whose outcome is unknown, through another relay. Write returns when the batch is stored or parked, or when
// its context ends; only after a nil error may the caller commit its offsets.
//
// There are three kinds of errors. Poison is data that PostgreSQL refuses: the writer searches for the
// refused signals, parks them with their bytes and stores the others. A schema error stops the sink, with an
// error in the log, until the schema fits. Everything else is retried without end; nothing is parked for it.
//
// A transaction body has no effect outside of its transaction: it works on copies, so that a repetition
// starts from the same batch.
package sink
