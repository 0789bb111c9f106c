package redis

import (
	"context"
	"strconv"
	"time"

	"storefront.internal/edge/internal/claims"
)

// epochTTL is so long that the key never expires. The rest of it gives the age of the epoch by the server's
// own clock. So one key and one command say whether there is an epoch, and whether it is older than ClaimTTL.
const epochTTL = 100 * 365 * 24 * time.Hour

// StartEpoch implements claims.Store. A complete memory gets an epoch that is ClaimTTL old.
func (c *Claims) StartEpoch(ctx context.Context, keys []claims.Key, complete bool) error {
	ttl := epochTTL
	if complete {
		ttl -= claims.ClaimTTL
	}
	b := c.batcher.Get()
	defer c.batcher.Put(b)
	for _, name := range c.epochNames(keys) {
		b.Add("set", name, "1", "px", milliseconds(ttl), "nx", "get")
	}
	return c.batcher.Do(ctx, b)
}

// memorySince returns the state of the memory whose epoch has that rest of its TTL.
func memorySince(leftMs int64) claims.Memory {
	switch {
	case leftMs == noKey:
		return claims.Unknown
	case ageOf(leftMs, epochTTL) < claims.ClaimTTL:
		return claims.RecentlyLost
	}
	return claims.Known
}

// epochNames returns the names of the epochs of the keys, each once.
func (c *Claims) epochNames(keys []claims.Key) []string {
	if c.shards == 1 {
		return c.epoch
	}
	var seen [clusterShards]bool
	var names []string
	for i := range keys {
		if n := c.shard(keys[i]); !seen[n] {
			seen[n] = true
			names = append(names, string(c.appendTag([]byte(c.prefix+"claims:epoch:"), n)))
		}
	}
	return names
}

func (c *Claims) shard(key claims.Key) int { return int(key[0]) % c.shards }

// appendTag appends the hash tag of a shard; a single server needs none.
func (c *Claims) appendTag(dst []byte, shard int) []byte {
	if c.shards == 1 {
		return dst
	}
	dst = append(dst, '{')
	dst = strconv.AppendInt(dst, int64(shard), 10)
	return append(dst, '}')
}
