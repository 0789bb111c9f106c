package redis

import (
	"context"
	"encoding/base64"
	"strconv"
	"time"

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
	epoch  []string // the name of a single server's
}

// clusterShards is the number of hash tags: enough to spread over the masters, and few to ask for their epochs.
const clusterShards = 32

var _ intake.Claims = (*Claims)(nil)

// NewClaims returns the claims kept under the prefix; clustered says whether the client is of a cluster.
func NewClaims(pipe *Pipeline, prefix string, clustered bool) *Claims {
	c := &Claims{pipe: pipe, prefix: prefix, shards: 1, epoch: []string{prefix + "claims:epoch"}}
	if clustered {
		c.shards = clusterShards
	}
	return c
}

// The lives in milliseconds.
const (
	claimLifeMs    = int64(intake.ClaimLife / time.Millisecond)
	registerLifeMs = int64(intake.RegisterLife / time.Millisecond)
)

// Take implements intake.Claims. The epochs are read behind the claims, in the same pipeline: a server that shows an
// old epoch after the claims were taken had lost nothing when they were.
func (c *Claims) Take(ctx context.Context, keys []intake.ClaimKey, holder string, previous []string) (intake.Epoch, error) {
	b := c.pipe.batch()
	defer c.pipe.free(b)
	var room [128]byte
	rest := appendWords(room[:0], holder, "px", strconv.FormatInt(claimLifeMs, 10), "nx", "get") // the same for every claim
	for i := range keys {
		b.begin(7)
		b.wire = append(c.appendClaim(appendWord(b.wire, "set"), &keys[i]), rest...)
	}
	epochs := c.askEpochs(b, keys)
	if err := c.pipe.Do(ctx, b); err != nil {
		return intake.Unmarked, err
	}
	for i := range keys {
		previous[i] = string(b.text(i)) // "" when the answer was nil: the claim was free
	}
	return b.worstEpoch(len(keys), epochs), nil
}

// Look implements intake.Claims.
func (c *Claims) Look(ctx context.Context, attempts []string, registers []intake.Register, keys []intake.ClaimKey, ages []time.Duration) error {
	b := c.pipe.batch()
	defer c.pipe.free(b)
	for _, attempt := range attempts {
		b.add("get", c.registerName(attempt))
	}
	for i := range keys {
		b.begin(2)
		b.wire = c.appendClaim(appendWord(b.wire, "pttl"), &keys[i])
	}
	if err := c.pipe.Do(ctx, b); err != nil {
		return err
	}
	for i := range attempts {
		registers[i] = intake.Register(b.text(i))
	}
	for i := range keys {
		ages[i] = ageOf(b.number(len(attempts)+i), intake.ClaimLife)
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
	b := c.pipe.batch()
	defer c.pipe.free(b)
	for i := range keys {
		b.begin(7)
		b.wire = c.appendClaim(appendWords(b.wire, "eval", seizeScript, "1"), &keys[i])
		b.wire = appendWords(b.wire, from[i], holder, strconv.FormatInt(claimLifeMs, 10))
	}
	if err := c.pipe.Do(ctx, b); err != nil {
		return err
	}
	for i := range keys {
		won[i] = b.number(i) == 1
	}
	return nil
}

// Mark implements intake.Claims.
func (c *Claims) Mark(ctx context.Context, attempts []string, state intake.Register, previous []intake.Register) error {
	b := c.pipe.batch()
	defer c.pipe.free(b)
	for _, attempt := range attempts {
		b.add("set", c.registerName(attempt), string(state), "px", strconv.FormatInt(registerLifeMs, 10), "nx", "get")
	}
	if err := c.pipe.Do(ctx, b); err != nil {
		return err
	}
	for i := range attempts {
		previous[i] = intake.Register(b.text(i))
	}
	return nil
}

func (c *Claims) registerName(attempt string) string { return c.prefix + "attempt:" + attempt }

// appendClaim appends the word that names the claim.
func (c *Claims) appendClaim(dst []byte, key *intake.ClaimKey) []byte {
	var room [128]byte
	return appendWord(dst, c.appendClaimName(room[:0], key))
}

func (c *Claims) appendClaimName(dst []byte, key *intake.ClaimKey) []byte {
	dst = append(append(dst, c.prefix...), "claim:"...)
	dst = c.appendTag(dst, c.shard(*key))
	return base64.RawURLEncoding.AppendEncode(dst, key[:])
}
