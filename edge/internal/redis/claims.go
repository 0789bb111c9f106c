package redis

import (
	"context"
	"encoding/base64"
	"errors"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"storefront.internal/edge/internal/intake"
)

// Claims implements intake.Claims. The keys:
//
//	<prefix>claim:<base64url of the signal's digest>   holder, lives intake.ClaimLife
//	<prefix>attempt:<attempt id>                       its register, written once, lives intake.RegisterLife
//	<prefix>claims:epoch                               when this server began to remember (epoch.go)
//
// In a cluster claims carry a hash tag, {0} to {31}, and there is an epoch for each: so an epoch is on the server
// whose claims it speaks of.
//
// The commands are SET, GET, PTTL and EVAL. The server must not evict: with maxmemory-policy noeviction a full server
// refuses, which is a 503, while an evicted claim would be forgotten in silence.
type Claims struct {
	pipe   *Pipeline
	prefix string
	shards int
}

// clusterShards is the number of hash tags: enough to spread over the masters, and few to ask for their epochs.
const clusterShards = 32

var _ intake.Claims = (*Claims)(nil)

// NewClaims returns the claims kept under the prefix; clustered says whether the client is of a cluster.
func NewClaims(pipe *Pipeline, prefix string, clustered bool) *Claims {
	c := &Claims{pipe: pipe, prefix: prefix, shards: 1}
	if clustered {
		c.shards = clusterShards
	}
	return c
}

// Arguments that are the same every time, boxed once by being constants.
const (
	claimLifeMs    = int64(intake.ClaimLife / time.Millisecond)
	registerLifeMs = int64(intake.RegisterLife / time.Millisecond)
)

// Take implements intake.Claims. The epochs are read behind the claims, in the same pipeline: a server that shows an
// old epoch after the claims were taken had lost nothing when they were.
func (c *Claims) Take(ctx context.Context, keys []intake.ClaimKey, holder string, previous []string) (intake.Epoch, error) {
	cmds := make([]goredis.Cmder, len(keys), len(keys)+1)
	takes := make([]*goredis.StringCmd, len(keys))
	var value any = holder
	args := make([]any, 0, 7*len(keys))
	for i, name := range c.claimNames(keys) {
		args = append(args, "set", name, value, "px", claimLifeMs, "nx", "get")
		takes[i] = goredis.NewStringCmd(ctx, args[7*i:7*i+7:7*i+7]...)
		cmds[i] = takes[i]
	}
	epochs := c.epochCommands(ctx, keys)
	for _, e := range epochs {
		cmds = append(cmds, e)
	}
	if err := c.pipe.Do(ctx, cmds); err != nil {
		return intake.Unmarked, err
	}
	for i, cmd := range takes {
		previous[i] = cmd.Val() // "" when the reply was nil: the claim was free
	}
	return worstEpoch(epochs), nil
}

// Look implements intake.Claims.
func (c *Claims) Look(ctx context.Context, attempts []string, registers []intake.Register, keys []intake.ClaimKey, ages []time.Duration) error {
	cmds := make([]goredis.Cmder, 0, len(attempts)+len(keys))
	gets := make([]*goredis.StringCmd, len(attempts))
	lives := make([]*goredis.IntCmd, len(keys))
	for i, attempt := range attempts {
		gets[i] = goredis.NewStringCmd(ctx, "get", c.registerName(attempt))
		cmds = append(cmds, gets[i])
	}
	for i, name := range c.claimNames(keys) {
		lives[i] = goredis.NewIntCmd(ctx, "pttl", name)
		cmds = append(cmds, lives[i])
	}
	if err := c.pipe.Do(ctx, cmds); err != nil {
		return err
	}
	for i, cmd := range gets {
		registers[i] = intake.Register(cmd.Val())
	}
	for i, cmd := range lives {
		ages[i] = ageOf(cmd.Val(), intake.ClaimLife)
	}
	return nil
}

// ageOf computes an age from what is left of a life, by the server's clock alone: 0 for a key that is gone. A key
// that never ends is none of ours, and as old as can be.
func ageOf(leftMs int64, life time.Duration) time.Duration {
	const gone, endless = -2, -1
	switch leftMs {
	case gone:
		return 0
	case endless:
		return life
	default:
		return max(0, life-time.Duration(leftMs)*time.Millisecond)
	}
}

// seizeScript is the compare-and-swap of one claim.
const seizeScript = `if redis.call('get', KEYS[1]) == ARGV[1] then redis.call('set', KEYS[1], ARGV[2], 'px', ARGV[3]) return 1 end return 0`

// Seize implements intake.Claims.
func (c *Claims) Seize(ctx context.Context, keys []intake.ClaimKey, from []string, holder string, won []bool) error {
	cmds := make([]goredis.Cmder, len(keys))
	for i, name := range c.claimNames(keys) {
		cmds[i] = goredis.NewIntCmd(ctx, "eval", seizeScript, 1, name, from[i], holder, claimLifeMs)
	}
	if err := c.pipe.Do(ctx, cmds); err != nil {
		return err
	}
	for i, cmd := range cmds {
		won[i] = cmd.(*goredis.IntCmd).Val() == 1
	}
	return nil
}

// Mark implements intake.Claims.
func (c *Claims) Mark(ctx context.Context, attempts []string, state intake.Register, previous []intake.Register) error {
	cmds := make([]goredis.Cmder, len(attempts))
	for i, attempt := range attempts {
		cmds[i] = goredis.NewStringCmd(ctx, "set", c.registerName(attempt), string(state), "px", registerLifeMs, "nx", "get")
	}
	if err := c.pipe.Do(ctx, cmds); err != nil {
		return err
	}
	for i, cmd := range cmds {
		register, err := cmd.(*goredis.StringCmd).Result()
		if err != nil && !errors.Is(err, goredis.Nil) {
			return err
		}
		previous[i] = intake.Register(register)
	}
	return nil
}

func (c *Claims) registerName(attempt string) string { return c.prefix + "attempt:" + attempt }

// claimNames returns the keys' names, which share one allocation.
func (c *Claims) claimNames(keys []intake.ClaimKey) []string {
	const digest = 22 // characters of 16 bytes
	size := len(c.prefix) + len("claim:{00}") + digest
	buf := make([]byte, 0, len(keys)*size)
	ends := make([]int, len(keys))
	for i := range keys {
		buf = append(append(buf, c.prefix...), "claim:"...)
		buf = c.appendTag(buf, c.shard(keys[i]))
		buf = base64.RawURLEncoding.AppendEncode(buf, keys[i][:])
		ends[i] = len(buf)
	}
	all, start := string(buf), 0
	names := make([]string, len(keys))
	for i, end := range ends {
		names[i] = all[start:end]
		start = end
	}
	return names
}
