// Package redis owns what control writes to Redis for the edges: a record for each live storefront key, a
// tombstone for each revoked one, the key version, and items. Every command uses keys of one slot, so a
// cluster works. PostgreSQL stays the truth: an edge trusts these records only while the version here is not
// behind.
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

// Keys writes storefront keys.
type Keys struct {
	client redis.UniversalClient
	prefix string
	swap   *redis.Script
}

// NewKeys returns the Keys under a prefix.
func NewKeys(client redis.UniversalClient, prefix string) *Keys {
	return &Keys{client: client, prefix: prefix, swap: redis.NewScript(`
		if (redis.call('GET', KEYS[1]) or ARGV[3]) ~= ARGV[1] then
			return 0
		end
		for i = 2, #KEYS do
			redis.call('SET', KEYS[i], ARGV[4], 'EX', ARGV[5])
		end
		redis.call('SET', KEYS[1], ARGV[2])
		return 1`)}
}

func (k *Keys) record(digest [32]byte) string {
	return storekey.RecordName(k.prefix, digest)
}

// PutGrant writes the record of a live key unless one exists: it never replaces a tombstone.
func (k *Keys) PutGrant(ctx context.Context, digest [32]byte, g storekey.Grant) error {
	value, err := json.Marshal(g)
	if err != nil {
		return fmt.Errorf("grant: %w", err)
	}
	err = k.client.SetArgs(ctx, k.record(digest), value, redis.SetArgs{Mode: "NX", TTL: grantTTL}).Err()
	if err != nil && !errors.Is(err, redis.Nil) {
		return fmt.Errorf("put grant: %w", err)
	}
	return nil
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

// SwapVersion publishes a key version together with the revocations that it includes, and announces it, if
// the stored version is still the old one.
func (k *Keys) SwapVersion(ctx context.Context, old, version int64,
	revoked [][32]byte) (swapped bool, err error) {
	text := strconv.FormatInt(version, 10)
	names := []string{k.version()}
	for _, d := range revoked {
		names = append(names, k.record(d))
	}
	n, err := k.swap.Run(ctx, k.client, names, old, text, storekeys.NoVersion, tombstone,
		int(tombstoneTTL.Seconds())).Int()
	if err != nil {
		return false, fmt.Errorf("swap key version: %w", err)
	}
	if n == 0 {
		return false, nil
	}
	if err := k.client.Publish(ctx, storekey.ChangesName(k.prefix), text).Err(); err != nil {
		return true, fmt.Errorf("hint at key version: %w", err)
	}
	return true, nil
}

// Version returns the published key version, or storekeys.NoVersion.
func (k *Keys) Version(ctx context.Context) (int64, error) {
	version, err := k.client.Get(ctx, k.version()).Int64()
	if errors.Is(err, redis.Nil) {
		return storekeys.NoVersion, nil
	}
	if err != nil {
		return 0, fmt.Errorf("read key version: %w", err)
	}
	return version, nil
}

func (k *Keys) version() string { return storekey.VersionName(k.prefix) }
