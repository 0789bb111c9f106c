package redis

import (
	"context"
	"strconv"
	"time"

	goredis "github.com/redis/go-redis/v9"

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
	var cmds []goredis.Cmder
	for _, name := range c.epochNames(keys) {
		cmds = append(cmds, goredis.NewStringCmd(ctx, "set", name, "1", "px", int64(life/time.Millisecond), "nx", "get"))
	}
	return c.pipe.Do(ctx, cmds)
}

func (c *Claims) epochCommands(ctx context.Context, keys []intake.ClaimKey) []*goredis.IntCmd {
	names := c.epochNames(keys)
	cmds := make([]*goredis.IntCmd, len(names))
	for i, name := range names {
		cmds[i] = goredis.NewIntCmd(ctx, "pttl", name)
	}
	return cmds
}

// worstEpoch reads the answers of epochCommands.
func worstEpoch(cmds []*goredis.IntCmd) intake.Epoch {
	const gone = -2
	worst := intake.Warm
	for _, cmd := range cmds {
		switch {
		case cmd.Val() == gone:
			worst = max(worst, intake.Unmarked)
		case ageOf(cmd.Val(), epochLife) < intake.ClaimLife:
			worst = max(worst, intake.Cold)
		}
	}
	return worst
}

// epochNames returns the names of the epochs that speak of the keys, each once.
func (c *Claims) epochNames(keys []intake.ClaimKey) []string {
	if c.shards == 1 {
		return []string{c.prefix + "claims:epoch"}
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
