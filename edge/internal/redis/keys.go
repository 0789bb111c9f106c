package redis

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
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

// Version implements access.Cache.
func (k *Keys) Version(ctx context.Context) (version int64, known bool, err error) {
	version, err = k.client.Get(ctx, storekey.VersionName(k.prefix)).Int64()
	switch {
	case errors.Is(err, goredis.Nil):
		return 0, false, nil
	case err != nil:
		return 0, false, fmt.Errorf("read key version: %w", err)
	}
	return version, true, nil
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
