// Package record owns the sink: it turns records of Kafka into stored signals, cart lines, Decisions and queued
// deliveries, each signal once, a whole batch in one transaction.
//
//	records ──Add──▶ Batch ──Record──▶ ledger ─▶ what is new ─▶ signals, audit
//	                   │                                     ├─▶ cart lines, folded
//	                   └─▶ parked: what is no record         └─▶ deliveries to the engine
//
// Exactness is the ledger's, so a batch may come again at any time: after a crash, after a COMMIT whose outcome is not
// known, through another relay. Record returns only when the batch lies stored or parked, or when it was told to stop;
// the caller may then, and only then, move its offsets.
//
// A failure is one of three. Poison is data that PostgreSQL refuses: it is sought out down to the signal and parked
// with its bytes, and its neighbours are stored. A schema that does not fit stops the sink loudly until it does.
// Everything else is the store's trouble and is tried again for ever; nothing is parked for it.
//
// The package refuses to know Kafka, SQL and the engine. It never stores a signal that the ledger did not report new.
package record
