// Package itemread owns how an edge reads catalog items for operation 2 (spec.md "Read a catalog item"; contract,
// section 2 "Operation 2"), and whether an item is a connection's. It refuses to know HTTP, Redis and PostgreSQL: they
// are ports. It changes nothing that is true: PostgreSQL holds the items, everything else is a copy.
//
//	memory (a copy lives the time to live) → Redis → PostgreSQL, one load per item at a time
//
// What holds:
//
//   - Never backwards. An edge does not answer an older refresh_revision of an item after a newer one, a deletion
//     included, nor does the process that takes its place. A mark per item outlives the copy in memory; a copy in Redis
//     that is older than the mark is passed over. The first one that a process meets is proven by PostgreSQL, since Redis
//     may hold an older version than was answered; only while PostgreSQL is away such a copy serves unproven. It is
//     proven again each minute: a version that Redis lost is made up for by then.
//   - A foreign item does not exist. The connection is part of every key, in memory, in Redis and in SQL; so a foreign
//     item takes the way of a missing one, step by step.
//   - Stores may be away. Without Redis items come from PostgreSQL, without PostgreSQL from Redis and memory, where a
//     copy then serves past its life. Only what is nowhere to be had is a service_unavailable.
//   - A flood of misses stays outside. What does not exist is remembered for at most a second; look-ups in PostgreSQL
//     have a bound, and those that found nothing a budget per key and client.
//
// Changes come as hints (Changed): they end the life of a copy at once. A hint that is lost costs no more than the time
// to live. PostgreSQL may not go back: after it was restored from a backup the copies in Redis are deleted and the edges
// started anew.
package itemread
