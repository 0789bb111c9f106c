// Package itemread owns how an edge reads catalog items (getCatalogItem), and whether an item belongs to a
// connection. PostgreSQL holds the items; memory and Redis hold copies.
//
//	memory (a copy is served for the time to live) → Redis → PostgreSQL, with one load per item at a time
//
// Its guarantees:
//
//   - Never backwards. Once an edge answered a refresh_revision of an item, a deletion included, neither it
//     nor the process that replaces it answers an older one. A high-water mark per item outlives the copy
//     in memory, and a copy in Redis below the mark is ignored. PostgreSQL verifies the first copy from
//     Redis that a process sees of an item, because Redis may be behind an earlier answer, and again each
//     minute, because Redis may lose a write. While PostgreSQL is down, an unverified copy is served; an edge
//     that stood still for seconds does not know that PostgreSQL is down.
//   - Items of other connections do not exist. The connection is part of every key in memory, Redis and
//     SQL, so such an item takes the same steps as a missing one.
//   - Stores may be down. Without Redis, items come from PostgreSQL; without PostgreSQL, from Redis and
//     from memory, past the time to live. The answer is service_unavailable only when no source has the
//     item.
//   - Misses are bounded. A missing item is remembered for at most a second, look-ups in PostgreSQL have a
//     bound, and look-ups that find nothing have a budget per key and client.
//
// Changes arrive as hints (Changed), which end the time of a copy at once; a lost hint costs no more than
// the time to live. PostgreSQL must not go back: after a restore from a backup, delete the copies in Redis
// and restart the edges.
package itemread
