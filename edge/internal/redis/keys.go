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

// Keys implements access.Cache. Control writes what is here when keys change; the edges fill in what is missing:
//
//	storekey.RecordName    JSON of a storekey.Grant, or the word revoked
//	storekey.VersionName   the version of the keys that these records are abreast of, a decimal
//	storekey.ChangesName   channel: the version rose; a hint only
type Keys struct {
	client goredis.UniversalClient
	prefix string
}

// grantLife bounds how long a grant that nobody revoked stays; it is filled again when it is used.
const grantLife = 24 * time.Hour

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
		return storekey.Grant{}, access.CacheEmpty, errors.New("key record is not readable")
	}
	return g, access.CacheGranted, nil
}

// Fill implements access.Cache.
func (k *Keys) Fill(ctx context.Context, d access.Digest, g storekey.Grant) error {
	raw, err := json.Marshal(g)
	if err != nil {
		return fmt.Errorf("encode key record: %w", err)
	}
	err = k.client.SetArgs(ctx, k.record(d), raw, goredis.SetArgs{Mode: "NX", TTL: grantLife}).Err()
	if err != nil && !errors.Is(err, goredis.Nil) { // Nil: something is there already
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

// Hints calls changed whenever control says that keys changed, until the context ends. The client subscribes again by
// itself after a lost connection; what is missed meanwhile is found by the poll.
func (k *Keys) Hints(ctx context.Context, changed func()) error {
	sub := k.client.Subscribe(ctx, storekey.ChangesName(k.prefix))
	defer func() { _ = sub.Close() }() // what is lost is a hint
	messages := sub.Channel()
	for {
		select {
		case <-ctx.Done():
			return nil
		case _, open := <-messages:
			if !open {
				return nil
			}
			changed()
		}
	}
}
