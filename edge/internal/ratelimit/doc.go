// Package ratelimit owns the public rate limits (contract, section 2 "Rate limits"): the pure arithmetic of a token
// bucket (GCRA) and a limiter with a bounded number of buckets, one for each storefront key and one for each key and
// client address. Its state is local to the process: the configured limits are divided by the number of replicas. It
// refuses to know HTTP beyond the values of its header fields, and it never speaks of our own overload: that is a
// 503 of another place.
package ratelimit
