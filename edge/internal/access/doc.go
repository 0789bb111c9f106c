// Package access owns what a storefront key opens: its connection, store and scopes. Control creates,
// changes and revokes keys; this package only resolves them.
//
// A grant is looked up in process memory (10 s), then in Redis, then in PostgreSQL, with one load of a key
// at a time. A poller reads the version of the keys from both stores every second; it rises with every key
// that is issued or revoked.
//
//	memory ──miss──▶ Redis ──no record, or not trusted──▶ PostgreSQL
//	  ▲                │                                      │
//	  └──── kept until the version changes, 10 s at most ◀────┘  (copied into Redis unless it has a record)
//
// These rules make a revoked key fail within two seconds, and within fifteen in the worst case:
//
//  1. A version that changed, in whichever store it is seen first, empties the memory.
//  2. Redis is used only while its version is not behind PostgreSQL's last known one. Control raises it
//     after it wrote the revocation, so a Redis that misses a revocation is not asked.
//  3. Memory is used while either store confirmed the version within 15 s. After that the answer is 503,
//     because the client did nothing wrong.
//  4. A key in memory that is used is looked up anew before its ten seconds end, so it does not lapse.
//  5. An unknown key is remembered for a second at most. A secret whose checksum is wrong is refused
//     without a look-up.
package access
