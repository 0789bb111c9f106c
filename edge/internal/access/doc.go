// Package access owns the question what a storefront key opens: its connection, store and scopes. It refuses to know
// HTTP, and it never makes, changes or revokes a key: control does.
//
// A grant is looked up in process memory (10 s), then in Redis, then in PostgreSQL, with one load of a key at a time.
// What is remembered has to be confirmed: a poller asks both stores every second for the version of the keys, which
// rises with every key that is issued or revoked.
//
//	memory ──miss──▶ Redis ──no record, or not trusted──▶ PostgreSQL
//	  ▲                │                                      │
//	  └──── kept until the version moves, 10 s at most ◀──────┘  (and filled into Redis unless something is there)
//
// The rules, which make a revoked key fail within two seconds, and within fifteen at the very worst:
//
//  1. A version that moved, in whichever store it is seen first, empties the memory.
//  2. Redis is believed only while its version is not behind the newest that was ever seen. Control raises it after the
//     tombstone of a revoked key is there, so a Redis that has not heard of a revocation is not asked.
//  3. What is remembered is good while either store confirmed the version within 15 s. After that nobody is let in:
//     the answer is a 503, for the client did nothing wrong.
//  4. That a key does not exist is remembered for a second at most. A secret whose checksum is wrong is refused without
//     any look-up.
package access
