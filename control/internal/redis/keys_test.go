package redis

import (
	"fmt"
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
	live := storekeys.KeyChange{Change: storekey.Change{Version: 1, Token: "t1", Digest: d}, Grant: g}
	begin := storekey.Change{Token: "begin"}
	empty := storekeys.Head{Version: storekeys.NoVersion}
	if ok, err := k.Reset(t.Context(), empty, 0, begin, nil); !ok || err != nil {
		t.Fatal(ok, err)
	}
	put := func() {
		t.Helper()
		if ok, err := k.Append(t.Context(), begin, 1, []storekeys.KeyChange{live}); !ok || err != nil {
			t.Fatal(ok, err)
		}
	}
	put()
	const want = `{"api_key_id":"key_1","connection_id":"con_1","store_id":"str_1","scopes":["catalog:read","recommendations:read","signals:write"]}`
	if got, ttl := client.Get(t.Context(), k.record(d)).Val(), client.TTL(t.Context(),
		k.record(d)).Val(); got != want || ttl < 23*time.Hour || ttl > grantTTL {
		t.Errorf("grant %s for %v", got, ttl)
	}
	if err := k.PutTombstones(t.Context(), [][32]byte{d, storekey.Digest([]byte("y"))}); err != nil {
		t.Fatal(err)
	}
	put()
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

// change is change n of a key of its own.
func change(n int64) storekeys.KeyChange {
	return storekeys.KeyChange{Change: storekey.Change{Version: n, Token: fmt.Sprint("t", n),
		Digest: storekey.Digest([]byte(fmt.Sprint(n)))}, Grant: storekey.Grant{KeyID: "key_1"}}
}

func changes(from, to int64) (all []storekeys.KeyChange) {
	for n := from; n <= to; n++ {
		all = append(all, change(n))
	}
	return all
}

func TestChangesAreAppended(t *testing.T) {
	t.Parallel()
	k, client, prefix := open(t)
	hints := client.Subscribe(t.Context(), storekey.ChangesName(prefix))
	defer func() { _ = hints.Close() }()
	if _, err := hints.Receive(t.Context()); err != nil {
		t.Fatal(err)
	}
	head := func(want storekeys.Head) {
		t.Helper()
		if h, err := k.Head(t.Context()); err != nil || h != want {
			t.Errorf("head %+v, %v; want %+v", h, err, want)
		}
	}
	at := func(version, newest int64) storekeys.Head {
		return storekeys.Head{Version: version, HasLog: true, Newest: change(newest).Change}
	}
	appended := func(since storekey.Change, version int64, all []storekeys.KeyChange, want bool) {
		t.Helper()
		if ok, err := k.Append(t.Context(), since, version, all); ok != want || err != nil {
			t.Errorf("append after %d: %v, %v", since.Version, ok, err)
		}
	}
	reset := func(have storekeys.Head, version int64, want bool) {
		t.Helper()
		revoked := [][32]byte{change(version).Digest}
		ok, err := k.Reset(t.Context(), have, version, change(version).Change, revoked)
		if ok != want || err != nil {
			t.Errorf("reset to %d: %v, %v", version, ok, err)
		}
	}
	empty := storekeys.Head{Version: storekeys.NoVersion}
	head(empty)
	appended(change(1).Change, 2, changes(2, 2), false)
	reset(at(3, 3), 1, false)
	reset(empty, 1, true)
	head(at(1, 1))
	reset(empty, 1, false)
	appended(change(1).Change, 3, changes(2, 3), true)
	head(at(3, 3))
	appended(change(2).Change, 5, changes(3, 5), true) // overlaps
	appended(change(1).Change, 4, changes(2, 4), true) // comes late
	head(at(5, 5))
	appended(storekey.Change{Version: 5, Token: "other"}, 6, changes(6, 6), false)
	if n := client.ZCard(t.Context(), k.log()).Val(); n != 5 {
		t.Errorf("%d changes", n)
	}
	if err := client.Set(t.Context(), k.version(), 3, 0).Err(); err != nil {
		t.Fatal(err)
	}
	appended(change(5).Change, 6, changes(6, 6), false) // the version went back
	reset(at(3, 5), 4, true)
	head(at(4, 4))
	if got := client.Get(t.Context(), k.record(change(4).Digest)).Val(); got != "revoked" {
		t.Errorf("record %q", got)
	}
	for _, want := range []string{"1", "3", "5", "4", "4"} {
		if m, err := hints.ReceiveMessage(t.Context()); err != nil || m.Payload != want {
			t.Errorf("hint %v, %v; want %s", m, err, want)
		}
	}
}

func TestTheLogIsBounded(t *testing.T) {
	t.Parallel()
	k, client, _ := open(t)
	if _, err := k.Reset(t.Context(), storekeys.Head{Version: storekeys.NoVersion}, 0, change(0).Change,
		nil); err != nil {
		t.Fatal(err)
	}
	for from := int64(1); from <= maxLog+500; from += 500 {
		if ok, err := k.Append(t.Context(), change(from-1).Change, from+499, changes(from, from+499)); !ok ||
			err != nil {
			t.Fatal(ok, err)
		}
	}
	if n := client.ZCard(t.Context(), k.log()).Val(); n != maxLog {
		t.Errorf("%d changes", n)
	}
	if h, err := k.Head(t.Context()); err != nil || h.Version != maxLog+500 || h.Newest.Version != h.Version {
		t.Errorf("%+v, %v", h, err)
	}
}

// Controls that append the same changes at once do not disturb each other.
func TestConcurrentAppends(t *testing.T) {
	t.Parallel()
	k, client, _ := open(t)
	if _, err := k.Reset(t.Context(), storekeys.Head{Version: storekeys.NoVersion}, 0, change(0).Change,
		nil); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for i := range int64(16) {
		wg.Go(func() {
			ok, err := k.Append(t.Context(), change(i%4).Change, 10+i, changes(i%4+1, 10+i))
			if err != nil || !ok && i%4 == 0 {
				t.Error(ok, err)
			}
		})
	}
	wg.Wait()
	if h, err := k.Head(t.Context()); err != nil || h.Version < 22 || h.Newest.Version != h.Version {
		t.Errorf("%+v, %v", h, err)
	}
	if n := client.ZCard(t.Context(), k.log()).Val(); n < 23 {
		t.Errorf("%d changes", n)
	}
}

func TestRedisAway(t *testing.T) {
	t.Parallel()
	client := Open(settings.Redis{RedisAddrs: []string{"127.0.0.1:1"}, RedisPassword: "canary"})
	defer func() { _ = client.Close() }()
	k := NewKeys(client, "x:")
	if _, err := k.Head(t.Context()); err == nil {
		t.Error("a version without Redis")
	}
	if err := k.PutTombstones(t.Context(), make([][32]byte, 1)); err == nil {
		t.Error("a tombstone without Redis")
	}
}
