// Package redis owns what control writes to Redis for the edges: a record for each live storefront key, a
// tombstone for each revoked one, the key version, the newest changes up to it, and items. Every command uses
// keys of one slot, so a cluster works. PostgreSQL stays the truth: an edge trusts these records only as far
// as the version here covers the changes that it knows.
//
// Package storekey defines the names.
package redis

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"storefront.internal/control/internal/storekeys"
	"storefront.internal/shared/storekey"
)

// The lifetimes of records. A tombstone outlives every fill that began before the revocation, and as long as
// PostgreSQL may be restored to a time before it.
const (
	grantTTL     = 24 * time.Hour
	tombstoneTTL = 30 * 24 * time.Hour
	tombstone    = "revoked"
)

// maxTombstonesPerPipeline bounds one pipeline.
const maxTombstonesPerPipeline = 500

// maxLog is how many changes the log holds, about 1.5 MB. An edge reads it every second.
const maxLog = 10_000

// Keys writes storefront keys.
type Keys struct {
	client        redis.UniversalClient
	prefix        string
	append, reset *redis.Script
}

// NewKeys returns the Keys under a prefix.
func NewKeys(client redis.UniversalClient, prefix string) *Keys {
	return &Keys{client: client, prefix: prefix, append: redis.NewScript(appendScript),
		reset: redis.NewScript(resetScript)}
}

// appendScript takes the names of version, log and the records of the changes. It does what is not done yet,
// so that two controls may append the same changes.
const appendScript = `
local from, from_version, to, max = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local version = tonumber(redis.call('GET', KEYS[1]) or '-1')
local at = redis.call('ZSCORE', KEYS[2], from)
if not at or tonumber(at) ~= from_version or version < from_version then
	return 0
end
for i = 3, #KEYS do
	local n = 7 + (i - 3) * 3
	local record = ARGV[n + 2]
	if record == 'revoked' then
		redis.call('SET', KEYS[i], record, 'EX', ARGV[5])
	else
		redis.call('SET', KEYS[i], record, 'EX', ARGV[6], 'NX')
	end
	redis.call('ZADD', KEYS[2], ARGV[n], ARGV[n + 1])
end
redis.call('ZREMRANGEBYRANK', KEYS[2], 0, -max - 1)
if to > version then
	redis.call('SET', KEYS[1], ARGV[3])
end
return 1`

// resetScript takes the names of version, log and the records of revoked keys.
const resetScript = `
local newest = redis.call('ZREVRANGE', KEYS[2], 0, 0)[1] or ''
if (redis.call('GET', KEYS[1]) or '-1') ~= ARGV[1] or newest ~= ARGV[2] then
	return 0
end
for i = 3, #KEYS do
	redis.call('SET', KEYS[i], 'revoked', 'EX', ARGV[6])
end
redis.call('DEL', KEYS[2])
redis.call('ZADD', KEYS[2], ARGV[4], ARGV[5])
redis.call('SET', KEYS[1], ARGV[3])
return 1`

func (k *Keys) record(digest [32]byte) string {
	return storekey.RecordName(k.prefix, digest)
}

// PutTombstones replaces the records of revoked keys.
func (k *Keys) PutTombstones(ctx context.Context, digests [][32]byte) error {
	for len(digests) > 0 {
		n := min(len(digests), maxTombstonesPerPipeline)
		_, err := k.client.Pipelined(ctx, func(p redis.Pipeliner) error {
			for _, d := range digests[:n] {
				p.Set(ctx, k.record(d), tombstone, tombstoneTTL)
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("put tombstones: %w", err)
		}
		digests = digests[n:]
	}
	return nil
}

// Tombstones reports which of the keys are revoked by their record.
func (k *Keys) Tombstones(ctx context.Context, digests [][32]byte) ([]bool, error) {
	var revoked []bool
	for chunk := range slices.Chunk(digests, maxTombstonesPerPipeline) {
		replies, err := k.client.Pipelined(ctx, func(p redis.Pipeliner) error {
			for _, d := range chunk {
				p.Get(ctx, k.record(d))
			}
			return nil
		})
		if err != nil && !errors.Is(err, redis.Nil) {
			return nil, fmt.Errorf("read tombstones: %w", err)
		}
		for _, r := range replies {
			value, err := r.(*redis.StringCmd).Result()
			if err != nil && !errors.Is(err, redis.Nil) {
				return nil, fmt.Errorf("read tombstones: %w", err)
			}
			revoked = append(revoked, value == tombstone)
		}
	}
	return revoked, nil
}

// Head returns the published version and the newest change of the log.
func (k *Keys) Head(ctx context.Context) (storekeys.Head, error) {
	var version *redis.StringCmd
	var newest *redis.ZSliceCmd
	_, err := k.client.TxPipelined(ctx, func(p redis.Pipeliner) error {
		version = p.Get(ctx, k.version())
		newest = p.ZRevRangeWithScores(ctx, k.log(), 0, 0)
		return nil
	})
	if err != nil && !errors.Is(err, redis.Nil) {
		return storekeys.Head{}, fmt.Errorf("read key version: %w", err)
	}
	h := storekeys.Head{Version: storekeys.NoVersion}
	if newest.Err() == nil && len(newest.Val()) == 1 {
		z := newest.Val()[0]
		if h.Newest, err = storekey.ParseMember(z.Member.(string), z.Score); err != nil {
			return storekeys.Head{}, err
		}
		h.HasLog = true
	}
	if errors.Is(version.Err(), redis.Nil) {
		return h, nil
	}
	if h.Version, err = version.Int64(); err != nil {
		return storekeys.Head{}, fmt.Errorf("read key version: %w", err)
	}
	return h, nil
}

// Append publishes a version together with the changes since the given one, and announces it. It is false
// when the log does not have the given change, or the version is below it.
func (k *Keys) Append(ctx context.Context, since storekey.Change, version int64,
	changes []storekeys.KeyChange) (appended bool, err error) {
	names := []string{k.version(), k.log()}
	args := []any{since.Member(), since.Version, version, maxLog, seconds(tombstoneTTL), seconds(grantTTL)}
	for _, c := range changes {
		record := tombstone
		if !c.Revoked {
			value, err := json.Marshal(c.Grant)
			if err != nil {
				return false, fmt.Errorf("grant: %w", err)
			}
			record = string(value)
		}
		names = append(names, k.record(c.Digest))
		args = append(args, c.Version, c.Member(), record)
	}
	return k.run(ctx, k.append, version, names, args)
}

// Reset publishes a version together with revocations, and begins the log anew with the newest change, if
// Redis still has the given head.
func (k *Keys) Reset(ctx context.Context, have storekeys.Head, version int64, newest storekey.Change,
	revoked [][32]byte) (reset bool, err error) {
	names := []string{k.version(), k.log()}
	for _, d := range revoked {
		names = append(names, k.record(d))
	}
	old := ""
	if have.HasLog {
		old = have.Newest.Member()
	}
	return k.run(ctx, k.reset, version, names, []any{have.Version, old, version, newest.Version,
		newest.Member(), seconds(tombstoneTTL)})
}

func (k *Keys) run(ctx context.Context, script *redis.Script, version int64, names []string,
	args []any) (done bool, err error) {
	n, err := script.Run(ctx, k.client, names, args...).Int()
	if err != nil {
		return false, fmt.Errorf("publish key version: %w", err)
	}
	if n == 0 {
		return false, nil
	}
	text := strconv.FormatInt(version, 10)
	if err := k.client.Publish(ctx, storekey.ChangesName(k.prefix), text).Err(); err != nil {
		return true, fmt.Errorf("hint at key version: %w", err)
	}
	return true, nil
}

func seconds(d time.Duration) int { return int(d.Seconds()) }

func (k *Keys) version() string { return storekey.VersionName(k.prefix) }

func (k *Keys) log() string { return storekey.LogName(k.prefix) }
