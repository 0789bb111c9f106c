package redis

import (
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"storefront.internal/control/internal/storekeys"
	"storefront.internal/shared/settings"
	"storefront.internal/shared/storekey"
	"storefront.internal/shared/testkit"
)

func open(t *testing.T) (*Keys, redis.UniversalClient, string) {
	t.Helper()
	addr, prefix := testkit.Redis(t)
	client := Open(settings.Redis{RedisAddrs: []string{addr}})
	t.Cleanup(func() { _ = client.Close() })
	return NewKeys(client, prefix), client, prefix
}

func TestALateGrantNeverUndoesATombstone(t *testing.T) {
	t.Parallel()
	k, client, _ := open(t)
	d := storekey.Digest([]byte("x"))
	g := storekey.Grant{KeyID: "key_1", ConnectionID: "con_1", StoreID: "str_1", Scopes: storekey.AllScopes()}
	if err := k.PutGrant(t.Context(), d, g); err != nil {
		t.Fatal(err)
	}
	const want = `{"api_key_id":"key_1","connection_id":"con_1","store_id":"str_1","scopes":["catalog:read","recommendations:read","signals:write"]}`
	if got, ttl := client.Get(t.Context(), k.record(d)).Val(), client.TTL(t.Context(),
		k.record(d)).Val(); got != want || ttl < 23*time.Hour || ttl > grantTTL {
		t.Errorf("grant %s for %v", got, ttl)
	}
	if err := k.PutTombstones(t.Context(), [][32]byte{d, storekey.Digest([]byte("y"))}); err != nil {
		t.Fatal(err)
	}
	if err := k.PutGrant(t.Context(), d, g); err != nil {
		t.Fatal(err)
	}
	if got, ttl := client.Get(t.Context(), k.record(d)).Val(), client.TTL(t.Context(),
		k.record(d)).Val(); got != "revoked" || ttl < 59*time.Minute || ttl > tombstoneTTL {
		t.Errorf("tombstone %s for %v", got, ttl)
	}
}

func TestTombstonesAreFound(t *testing.T) {
	t.Parallel()
	k, _, _ := open(t)
	digests := make([][32]byte, maxTombstonesPerPipeline+2)
	for i := range digests {
		digests[i] = storekey.Digest([]byte{byte(i), byte(i >> 8)})
	}
	last := len(digests) - 1
	if err := k.PutTombstones(t.Context(), digests[last:]); err != nil {
		t.Fatal(err)
	}
	if err := k.PutGrant(t.Context(), digests[0], storekey.Grant{KeyID: "key_1"}); err != nil {
		t.Fatal(err)
	}
	revoked, err := k.Tombstones(t.Context(), digests)
	if err != nil || len(revoked) != len(digests) {
		t.Fatalf("%d answers, %v", len(revoked), err)
	}
	for i, got := range revoked {
		if got != (i == last) {
			t.Errorf("key %d: revoked %v", i, got)
		}
	}
}

func TestManyTombstones(t *testing.T) {
	t.Parallel()
	k, client, _ := open(t)
	digests := make([][32]byte, 2*maxTombstonesPerPipeline+1)
	for i := range digests {
		digests[i] = storekey.Digest([]byte{byte(i), byte(i >> 8)})
	}
	if err := k.PutTombstones(t.Context(), digests); err != nil {
		t.Fatal(err)
	}
	for _, d := range digests {
		if client.Get(t.Context(), k.record(d)).Val() != "revoked" {
			t.Fatal("a tombstone is missing")
		}
	}
	if err := k.PutTombstones(t.Context(), nil); err != nil {
		t.Error(err)
	}
}

func TestVersionsAreSwapped(t *testing.T) {
	t.Parallel()
	k, client, prefix := open(t)
	hints := client.Subscribe(t.Context(), storekey.ChangesName(prefix))
	defer func() { _ = hints.Close() }()
	if _, err := hints.Receive(t.Context()); err != nil {
		t.Fatal(err)
	}
	f := func(old, version int64, swapped bool, want int64) {
		t.Helper()
		got, err := k.SwapVersion(t.Context(), old, version, nil)
		if err != nil || got != swapped {
			t.Errorf("swap %d for %d: %v, %v", old, version, got, err)
		}
		if v, err := k.Version(t.Context()); err != nil || v != want {
			t.Errorf("version %d, %v; want %d", v, err, want)
		}
	}
	f(3, 4, false, storekeys.NoVersion)
	f(storekeys.NoVersion, 0, true, 0)
	f(storekeys.NoVersion, 7, false, 0)
	f(0, 7, true, 7)
	f(6, 8, false, 7)
	for _, want := range []string{"0", "7"} {
		if m, err := hints.ReceiveMessage(t.Context()); err != nil || m.Payload != want {
			t.Errorf("hint %v, %v; want %s", m, err, want)
		}
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	won := 0
	for i := range 16 {
		wg.Go(func() {
			swapped, err := k.SwapVersion(t.Context(), 7, int64(100+i), nil)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				t.Error(err)
			}
			if swapped {
				won++
			}
		})
	}
	wg.Wait()
	if won != 1 {
		t.Errorf("%d of 16 swapped", won)
	}
}

func TestRedisAway(t *testing.T) {
	t.Parallel()
	client := Open(settings.Redis{RedisAddrs: []string{"127.0.0.1:1"}, RedisPassword: "canary"})
	defer func() { _ = client.Close() }()
	k := NewKeys(client, "x:")
	if _, err := k.Version(t.Context()); err == nil {
		t.Error("a version without Redis")
	}
	if err := k.PutTombstones(t.Context(), make([][32]byte, 1)); err == nil {
		t.Error("a tombstone without Redis")
	}
}
