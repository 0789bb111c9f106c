// Package access owns what a storefront key opens: its connection, store and scopes. Control creates,
// changes and revokes keys; this package only resolves them.
//
// A grant is looked up in process memory (10 s), then in Redis, then in PostgreSQL, with one load of a key
// at a time. A poller reads the changes of the keys since the last known one from both stores every second.
// Every key that is issued or revoked is a change and raises the version of the keys.
//
//	memory ──miss──▶ Redis ──no record, or not trusted──▶ PostgreSQL
//	  ▲                │                                      │
//	  └────── kept until the key changes, 10 s at most ◀──────┘  (copied into Redis unless it has a record)
//
// These rules make a revoked key fail within two seconds, and within fifteen in the worst case:
//
//  1. A change, in whichever store it is seen first, removes its key from memory. If a store cannot tell
//     which keys changed, all are removed.
//  2. Redis is used for a key only if it has the last known change of that key. Control writes change, record
//     and version in one step, so a Redis that misses a revocation is known to be behind.
//  3. Memory is used while either store said within 15 s that it has no later changes. After that the answer
//     is 503, because the client did nothing wrong.
//  4. A key in memory that is used is looked up anew before its ten seconds end, so it does not lapse.
//  5. An unknown key is remembered for a second at most. A secret whose checksum is wrong is refused
//     without a look-up.
package access
