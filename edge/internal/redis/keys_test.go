package redis

import (
	"context"
	"slices"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"storefront.internal/edge/internal/access"
	"storefront.internal/edge/internal/redisbatch"
	"storefront.internal/shared/settings"
	"storefront.internal/shared/storekey"
	"storefront.internal/shared/testkit"
)

func newKeys(t *testing.T) (*Keys, goredis.UniversalClient, string) {
	t.Helper()
	addr, prefix := testkit.Redis(t)
	client := redisbatch.NewClient(settings.Redis{RedisAddrs: []string{addr}}, redisbatch.Timeout)
	t.Cleanup(func() { _ = client.Close() })
	return NewKeys(client, prefix), client, prefix
}

func TestKeyRecords(t *testing.T) {
	t.Parallel()
	k, client, _ := newKeys(t)
	d := storekey.Digest([]byte("a key"))
	if _, state, err := k.Grant(t.Context(), d); err != nil || state != access.CacheEmpty {
		t.Fatalf("%v, %v", state, err)
	}
	want := storekey.Grant{KeyID: "key_1", ConnectionID: "con_1", StoreID: "str_1",
		Scopes: storekey.AllScopes()}
	if err := k.Fill(t.Context(), d, want); err != nil {
		t.Fatal(err)
	}
	got, state, err := k.Grant(t.Context(), d)
	if err != nil || state != access.CacheGranted || got.KeyID != want.KeyID ||
		got.ConnectionID != want.ConnectionID || len(got.Scopes) != 3 {
		t.Fatalf("%+v, %v, %v", got, state, err)
	}
	name := k.record(d)
	if ttl := client.PTTL(t.Context(), name).Val(); ttl <= 23*time.Hour || ttl > grantTTL {
		t.Errorf("life %s", ttl)
	}
	if err := client.Set(t.Context(), name, "revoked", time.Hour).Err(); err != nil { // as control does
		t.Fatal(err)
	}
	if err := k.Fill(t.Context(), d, want); err != nil {
		t.Fatal(err)
	}
	if _, state, err := k.Grant(t.Context(), d); err != nil || state != access.CacheRevoked {
		t.Errorf("a late fill undid the revocation: %v, %v", state, err)
	}
	for _, broken := range []string{"", "{", `{}`, `{"api_key_id":"key_1"}`, "null"} {
		if err := client.Set(t.Context(), name, broken, time.Hour).Err(); err != nil {
			t.Fatal(err)
		}
		if _, state, err := k.Grant(t.Context(), d); err == nil || state != access.CacheEmpty {
			t.Errorf("%q: %v, %v", broken, state, err)
		}
	}
}

func TestPublishedChanges(t *testing.T) {
	t.Parallel()
	k, client, prefix := newKeys(t)
	read := func(since storekey.Change, known bool, want access.Log) {
		t.Helper()
		got, published, err := k.Changes(t.Context(), since, known)
		if err != nil || published != (want.Version >= 0) || published && (got.Version != want.Version ||
			!slices.Equal(got.Changes, want.Changes)) {
			t.Errorf("%+v, %t, %v; want %+v", got, published, err, want)
		}
	}
	var changes []storekey.Change // newest first
	for v := int64(9); v > 5; v-- {
		changes = append(changes, storekey.Change{Version: v, Token: "t",
			Digest: storekey.Digest([]byte{byte(v)})})
	}
	read(changes[0], true, access.Log{Version: -1})
	client.Set(t.Context(), storekey.VersionName(prefix), 9, 0)
	read(changes[0], true, access.Log{Version: 9}) // by the previous release
	for _, c := range changes {
		client.ZAdd(t.Context(), storekey.LogName(prefix), goredis.Z{Score: float64(c.Version),
			Member: c.Member()})
	}
	read(changes[2], true, access.Log{Version: 9, Changes: changes[:3]})
	read(storekey.Change{}, true, access.Log{Version: 9, Changes: changes})
	read(storekey.Change{Version: 12}, true, access.Log{Version: 9, Changes: changes[:1]})
	read(storekey.Change{}, false, access.Log{Version: 9, Changes: changes[:1]})
	client.Set(t.Context(), storekey.VersionName(prefix), "x", 0)
	if _, published, err := k.Changes(t.Context(), changes[0], true); err == nil || published {
		t.Error("a version that is not a number is accepted")
	}
	client.Set(t.Context(), storekey.VersionName(prefix), 9, 0)
	client.ZAdd(t.Context(), storekey.LogName(prefix), goredis.Z{Score: 10, Member: "broken"})
	if _, published, err := k.Changes(t.Context(), changes[0], true); err == nil || published {
		t.Error("a change that is malformed is accepted")
	}
}

func TestKeyHints(t *testing.T) {
	t.Parallel()
	k, client, prefix := newKeys(t)
	ctx, cancel := context.WithCancel(t.Context())
	changed, done := make(chan struct{}, 1000), make(chan error, 1)
	go func() { done <- k.Hints(ctx, func() { changed <- struct{}{} }) }()
	deadline := time.After(20 * time.Second)
	for heard := false; !heard; { // until the subscription is there
		client.Publish(ctx, storekey.ChangesName(prefix), "1")
		select {
		case <-changed:
			heard = true
		case <-deadline:
			t.Fatal("no hint arrived")
		default:
		}
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestKeysWithoutRedis(t *testing.T) {
	t.Parallel()
	client := redisbatch.NewClient(settings.Redis{RedisAddrs: []string{"127.0.0.1:1"}}, redisbatch.Timeout)
	t.Cleanup(func() { _ = client.Close() })
	k := NewKeys(client, "x:")
	if _, state, err := k.Grant(t.Context(), access.Digest{}); err == nil || state != access.CacheEmpty {
		t.Errorf("%v, %v", state, err)
	}
	if err := k.Fill(t.Context(), access.Digest{}, storekey.Grant{}); err == nil {
		t.Error("no error")
	}
	if _, published, err := k.Changes(t.Context(), storekey.Change{}, false); err == nil || published {
		t.Error("no error")
	}
}
