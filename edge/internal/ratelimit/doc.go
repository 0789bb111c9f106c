// Package ratelimit owns the public rate limits: the pure arithmetic of a token bucket (GCRA) and a limiter
// with a bounded number of buckets: one for each storefront key, one for each client address of a key (IPv6:
// each /64), and one for each IPv6 /48. The state is local to the process, so the configured quotas are
// divided by the number of replicas. It knows the values of the RateLimit header fields and nothing else of
// HTTP. Overload of the edge itself is package overload's.
package ratelimit
