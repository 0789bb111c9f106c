package redis

import (
	"context"
	"encoding/base64"
	"strconv"
	"time"

	"storefront.internal/edge/internal/claims"
	"storefront.internal/edge/internal/redisbatch"
)

// Claims implements claims.Store. The keys:
//
//	<prefix>claim:<base64url of the digest>   holder, for claims.ClaimTTL
//	<prefix>attempt:<attempt id>              its status, written once, for claims.AttemptTTL
//	<prefix>claims:epoch                      since when this server remembers claims (epoch.go)
//
// In a cluster claims carry a hash tag, {0} to {31}, and there is an epoch for each tag, so that an epoch is
// on the server whose claims it is about.
//
// An ACL has to allow SET, GET, PTTL and EVAL, ECHO and AUTH, which redisbatch sends, and INFO, which
// poolmetrics sends. The server must not
// evict: with maxmemory-policy noeviction a full server returns errors, which become 503s, while an evicted
// claim would be forgotten unnoticed.
type Claims struct {
	batcher *redisbatch.Batcher
	prefix  string
	shards  int
	epoch   []string // the name of a single server's

	// parts of commands in wire format
	heads          [][]byte // of setting a claim, up to its digest, by shard
	claimOptions   []byte   // behind its holder
	attemptOptions []byte   // of setting an attempt's status, behind the status
	readEpoch      []byte   // of a single server
}

// clusterShards is the number of hash tags: enough to spread over the masters, and few epochs to read.
const clusterShards = 32

var _ claims.Store = (*Claims)(nil)

// NewClaims returns the claims kept under the prefix; clustered says whether the batcher's client is of a
// cluster.
func NewClaims(batcher *redisbatch.Batcher, prefix string, clustered bool) *Claims {
	c := &Claims{batcher: batcher, prefix: prefix, shards: 1, epoch: []string{prefix + "claims:epoch"}}
	if clustered {
		c.shards = clusterShards
	}
	for shard := range c.shards {
		c.heads = append(c.heads, c.claimHead(shard))
	}
	c.claimOptions = redisbatch.AppendWords(nil, "px", milliseconds(claims.ClaimTTL), "nx", "get")
	c.readEpoch = redisbatch.AppendWords(redisbatch.AppendHeader(nil, 2), "pttl", c.epoch[0])
	c.attemptOptions = redisbatch.AppendWords(nil, "px", milliseconds(claims.AttemptTTL), "nx", "get")
	return c
}

// claimHead begins the command that sets a claim; the digest follows, "\r\n", the holder and the options.
func (c *Claims) claimHead(shard int) []byte {
	name := c.appendTag([]byte(c.prefix+"claim:"), shard)
	head := redisbatch.AppendWords(redisbatch.AppendHeader(nil, 7), "set")
	head = redisbatch.AppendLength(head, len(name)+base64.RawURLEncoding.EncodedLen(len(claims.Key{})))
	return append(head, name...)
}

// milliseconds returns a TTL as Redis' option PX takes it.
func milliseconds(ttl time.Duration) string { return strconv.FormatInt(ttl.Milliseconds(), 10) }

// Claim implements claims.Store. It reads the epochs behind the claims, in the same round trip: a server that
// has an old epoch after the claims were set had lost nothing when they were set. So all requests of a round
// trip may share the answer of a single server.
func (c *Claims) Claim(
	ctx context.Context, keys []claims.Key, holder string, previous []string,
) (claims.Memory, error) {
	b := c.batcher.Get()
	defer c.batcher.Put(b)
	b.Encode(len(keys), func(dst []byte) []byte {
		for i := range keys {
			dst = append(dst, c.heads[c.shard(keys[i])]...)
			dst = append(base64.RawURLEncoding.AppendEncode(dst, keys[i][:]), "\r\n"...)
			dst = append(redisbatch.AppendWords(dst, holder), c.claimOptions...)
		}
		return dst
	})
	var epochs []string
	if c.shards == 1 {
		b.Share(c.readEpoch)
	} else {
		epochs = c.epochNames(keys)
	}
	for _, name := range epochs {
		b.Add("pttl", name)
	}
	if err := c.batcher.Do(ctx, b); err != nil {
		return claims.Unknown, err
	}
	for i := range keys {
		previous[i] = string(b.Text(i)) // "" when the reply is nil: the claim was free
	}
	memory := claims.Known
	if c.shards == 1 {
		memory = memorySince(b.Shared())
	}
	for i := range epochs {
		memory = max(memory, memorySince(b.Number(len(keys)+i)))
	}
	return memory, nil
}

// Inspect implements claims.Store.
func (c *Claims) Inspect(
	ctx context.Context, attempts []string, statuses []claims.Status, keys []claims.Key, ages []time.Duration,
) error {
	b := c.batcher.Get()
	defer c.batcher.Put(b)
	for _, attempt := range attempts {
		b.Add("get", c.prefix+attemptName+attempt)
	}
	for i := range keys {
		b.Add("pttl", c.claimName(&keys[i]))
	}
	if err := c.batcher.Do(ctx, b); err != nil {
		return err
	}
	for i := range attempts {
		statuses[i] = claims.Status(b.Text(i))
	}
	for i := range keys {
		ages[i] = ageOf(b.Number(len(attempts)+i), claims.ClaimTTL)
	}
	return nil
}

// The replies of PTTL that are no time.
const (
	noKey = -2
	noTTL = -1
)

// ageOf returns the age of a key from the rest of its TTL, so by the server's clock alone: 0 for a key that
// is gone. A key without a TTL was not written by the edge; it counts as old as can be.
func ageOf(leftMs int64, ttl time.Duration) time.Duration {
	switch leftMs {
	case noKey:
		return 0
	case noTTL:
		return ttl
	default:
		return max(0, ttl-time.Duration(leftMs)*time.Millisecond)
	}
}

// swapScript is the compare-and-swap of one claim.
const swapScript = `if redis.call('get', KEYS[1]) == ARGV[1] then ` +
	`redis.call('set', KEYS[1], ARGV[2], 'px', ARGV[3]) return 1 end return 0`

// CompareAndSwap implements claims.Store.
func (c *Claims) CompareAndSwap(
	ctx context.Context, keys []claims.Key, from []string, holder string, swapped []bool,
) error {
	b := c.batcher.Get()
	defer c.batcher.Put(b)
	for i := range keys {
		b.Add("eval", swapScript, "1", c.claimName(&keys[i]), from[i], holder,
			milliseconds(claims.ClaimTTL))
	}
	if err := c.batcher.Do(ctx, b); err != nil {
		return err
	}
	for i := range keys {
		swapped[i] = b.Number(i) == 1
	}
	return nil
}

// Resolve implements claims.Store.
func (c *Claims) Resolve(
	ctx context.Context, attempts []string, status claims.Status, previous []claims.Status,
) error {
	b := c.batcher.Get()
	defer c.batcher.Put(b)
	b.Encode(len(attempts), func(dst []byte) []byte {
		for _, attempt := range attempts {
			dst = redisbatch.AppendWords(redisbatch.AppendHeader(dst, 7), "set")
			dst = redisbatch.AppendJoined(dst, c.prefix, attemptName, attempt)
			dst = append(redisbatch.AppendWords(dst, string(status)), c.attemptOptions...)
		}
		return dst
	})
	if err := c.batcher.Do(ctx, b); err != nil {
		return err
	}
	for i := range attempts {
		previous[i] = claims.Status(b.Text(i))
	}
	return nil
}

// attemptName is what the name of an attempt's status begins with, behind the prefix.
const attemptName = "attempt:"

func (c *Claims) claimName(key *claims.Key) string {
	name := c.appendTag([]byte(c.prefix+"claim:"), c.shard(*key))
	return string(base64.RawURLEncoding.AppendEncode(name, key[:]))
}
