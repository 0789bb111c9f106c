package redis

import (
	"context"
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

func TestKeyVersion(t *testing.T) {
	t.Parallel()
	k, client, prefix := newKeys(t)
	if _, known, err := k.Version(t.Context()); err != nil || known {
		t.Fatalf("%t, %v", known, err)
	}
	for value, want := range map[string]int64{"0": 0, "42": 42} {
		if err := client.Set(t.Context(), storekey.VersionName(prefix), value, 0).Err(); err != nil {
			t.Fatal(err)
		}
		if v, known, err := k.Version(t.Context()); err != nil || !known || v != want {
			t.Errorf("%d, %t, %v", v, known, err)
		}
	}
	client.Set(t.Context(), storekey.VersionName(prefix), "x", 0)
	if _, known, err := k.Version(t.Context()); err == nil || known {
		t.Error("a version that is not a number is accepted")
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
	if _, known, err := k.Version(t.Context()); err == nil || known {
		t.Error("no error")
	}
}
