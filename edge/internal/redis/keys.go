package redis

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"storefront.internal/edge/internal/access"
	"storefront.internal/shared/storekey"
)

// Keys implements access.Cache. Control writes records when keys change; the edges write those that are
// missing:
//
//	storekey.RecordName    JSON of a storekey.Grant, or the word revoked
//	storekey.VersionName   the version of the keys up to which the records are current, a decimal
//	storekey.LogName       the newest changes up to the version, by their versions
//	storekey.ChangesName   channel: the version rose; a hint only
type Keys struct {
	client goredis.UniversalClient
	prefix string
}

// grantTTL is how long an unchanged grant stays; the next use of the key writes it again.
const grantTTL = 24 * time.Hour

// revoked is the tombstone of a key.
const revoked = "revoked"

var _ access.Cache = (*Keys)(nil)

// NewKeys returns the records of keys kept under the prefix.
func NewKeys(client goredis.UniversalClient, prefix string) *Keys {
	return &Keys{client: client, prefix: prefix}
}

func (k *Keys) record(d access.Digest) string { return storekey.RecordName(k.prefix, d) }

// Grant implements access.Cache.
func (k *Keys) Grant(ctx context.Context, d access.Digest) (storekey.Grant, access.CacheState, error) {
	raw, err := k.client.Get(ctx, k.record(d)).Bytes()
	switch {
	case errors.Is(err, goredis.Nil):
		return storekey.Grant{}, access.CacheEmpty, nil
	case err != nil:
		return storekey.Grant{}, access.CacheEmpty, fmt.Errorf("read key record: %w", err)
	case string(raw) == revoked:
		return storekey.Grant{}, access.CacheRevoked, nil
	}
	var g storekey.Grant
	if json.Unmarshal(raw, &g) != nil || g.KeyID == "" || g.ConnectionID == "" || g.StoreID == "" {
		return storekey.Grant{}, access.CacheEmpty, errors.New("key record is malformed")
	}
	return g, access.CacheGranted, nil
}

// Fill implements access.Cache.
func (k *Keys) Fill(ctx context.Context, d access.Digest, g storekey.Grant) error {
	raw, err := json.Marshal(g)
	if err != nil {
		return fmt.Errorf("encode key record: %w", err)
	}
	err = k.client.SetArgs(ctx, k.record(d), raw, goredis.SetArgs{Mode: "NX", TTL: grantTTL}).Err()
	if err != nil && !errors.Is(err, goredis.Nil) { // Nil: there is a record already
		return fmt.Errorf("fill key record: %w", err)
	}
	return nil
}

// Changes implements access.Cache. It reads version and log in one step, because they belong together.
func (k *Keys) Changes(ctx context.Context, since storekey.Change,
	known bool) (log access.Log, published bool, err error) {
	limit := int64(access.MaxChanges)
	if !known {
		limit = 1
	}
	var version *goredis.StringCmd
	var changes, newest *goredis.ZSliceCmd
	_, err = k.client.TxPipelined(ctx, func(p goredis.Pipeliner) error {
		version = p.Get(ctx, storekey.VersionName(k.prefix))
		changes = p.ZRevRangeByScoreWithScores(ctx, storekey.LogName(k.prefix), &goredis.ZRangeBy{
			Max: "+inf", Min: strconv.FormatInt(since.Version, 10), Count: limit})
		newest = p.ZRevRangeWithScores(ctx, storekey.LogName(k.prefix), 0, 0)
		return nil
	})
	switch {
	case errors.Is(err, goredis.Nil):
		return access.Log{}, false, nil
	case err != nil:
		return access.Log{}, false, fmt.Errorf("read key changes: %w", err)
	}
	if log.Version, err = version.Int64(); err != nil {
		return access.Log{}, false, fmt.Errorf("read key version: %w", err)
	}
	members := changes.Val()
	if len(members) == 0 {
		members = newest.Val()
	}
	log.Changes = make([]storekey.Change, len(members))
	for i, z := range members {
		member, _ := z.Member.(string)
		if log.Changes[i], err = storekey.ParseMember(member, z.Score); err != nil {
			return access.Log{}, false, err
		}
	}
	return log, true, nil
}

// Hints calls changed whenever control says that keys have changed, until ctx ends. The poll of the version
// finds the changes whose hints are missed.
func (k *Keys) Hints(ctx context.Context, changed func()) error {
	return subscribe(ctx, k.client, storekey.ChangesName(k.prefix), func(string) { changed() })
}

// subscribe calls receive for each message of the channel, until ctx ends. The client subscribes again after
// a lost conn; messages in between are missed.
func subscribe(ctx context.Context, client goredis.UniversalClient, channel string,
	receive func(payload string)) error {
	const buffered = 1000 // messages
	sub := client.Subscribe(ctx, channel)
	defer func() { _ = sub.Close() }() // an error concerns hints only
	messages := sub.Channel(goredis.WithChannelSize(buffered))
	for {
		select {
		case <-ctx.Done():
			return nil
		case m, open := <-messages:
			if !open {
				return nil
			}
			receive(m.Payload)
		}
	}
}
