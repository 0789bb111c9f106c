package redis

import (
	"context"
	"strconv"
	"time"

	"storefront.internal/edge/internal/intake"
)

// epochLife is so long that the key never ends; what is left of it tells its age by the server's own clock. So one
// key and one command say both whether somebody marked the server, and whether a claim's life has passed since.
const epochLife = 100 * 365 * 24 * time.Hour

// MarkEpoch implements intake.Claims. The first mark stays. A server that had nothing to forget is marked as one that
// began a claim's life ago.
func (c *Claims) MarkEpoch(ctx context.Context, keys []intake.ClaimKey, warm bool) error {
	life := epochLife
	if warm {
		life -= intake.ClaimLife
	}
	b := c.pipe.batch()
	defer c.pipe.free(b)
	for _, name := range c.epochNames(keys) {
		b.add("set", name, "1", "px", strconv.FormatInt(int64(life/time.Millisecond), 10), "nx", "get")
	}
	return c.pipe.Do(ctx, b)
}

// askEpochs adds the questions for the epochs that speak of the keys, and answers how many they are.
func (c *Claims) askEpochs(b *batch, keys []intake.ClaimKey) int {
	names := c.epochNames(keys)
	for _, name := range names {
		b.add("pttl", name)
	}
	return len(names)
}

// worstEpoch reads the answers of askEpochs, of which the first is the batch's one of that number.
func (b *batch) worstEpoch(first, n int) intake.Epoch {
	const gone = -2
	worst := intake.Warm
	for i := first; i < first+n; i++ {
		switch left := b.number(i); {
		case left == gone:
			worst = max(worst, intake.Unmarked)
		case ageOf(left, epochLife) < intake.ClaimLife:
			worst = max(worst, intake.Cold)
		}
	}
	return worst
}

// epochNames returns the names of the epochs that speak of the keys, each once.
func (c *Claims) epochNames(keys []intake.ClaimKey) []string {
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

func (c *Claims) shard(key intake.ClaimKey) int { return int(key[0]) % c.shards }

// appendTag appends the hash tag of a shard; a single server needs none.
func (c *Claims) appendTag(dst []byte, shard int) []byte {
	if c.shards == 1 {
		return dst
	}
	dst = append(dst, '{')
	dst = strconv.AppendInt(dst, int64(shard), 10)
	return append(dst, '}')
}
