package redis

import (
	"strings"
	"sync"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"storefront.internal/control/internal/observation"
	"storefront.internal/shared/ident"
	"storefront.internal/shared/settings"
	"storefront.internal/shared/testkit"
)

func newItems(t *testing.T) (*Items, goredis.UniversalClient, string) {
	t.Helper()
	addr, prefix := testkit.Redis(t)
	client := Open(settings.Redis{RedisAddrs: []string{addr}})
	t.Cleanup(func() { _ = client.Close() })
	return NewItems(client, prefix), client, prefix
}

func TestAnOlderItemNeverReplacesANewerOne(t *testing.T) {
	t.Parallel()
	items, client, prefix := newItems(t)
	sub := client.Subscribe(t.Context(), prefix+"items:changed")
	defer func() { _ = sub.Close() }()
	if _, err := sub.Receive(t.Context()); err != nil {
		t.Fatal(err)
	}
	key := prefix + "item:con_1:itm_1"
	f := func(revision int64, body string, written int, want string) {
		t.Helper()
		n, err := items.PutItems(t.Context(), "con_1", []observation.ServedItem{{ItemID: "itm_1",
			RefreshRevision: revision, Body: []byte(body)}})
		if got := client.Get(t.Context(), key).Val(); err != nil || n != written || got != want {
			t.Errorf("revision %d: %d written, %q, %v", revision, n, got, err)
		}
	}
	f(9, "nine", 1, "9\nnine")
	f(10, "ten\n1\n", 1, "10\nten\n1\n") // no comparison of texts
	f(9, "nine", 0, "10\nten\n1\n")
	f(10, "other", 0, "10\nten\n1\n")
	f(9007199254740991, "", 1, "9007199254740991\n")
	f(11, "eleven", 0, "9007199254740991\n")
	if ttl := client.TTL(t.Context(), key).Val(); ttl < 59*time.Minute || ttl > itemTTL {
		t.Errorf("life %v", ttl)
	}
	// Items that were not written are announced too: an edge's own fill may have come first, which other
	// edges did not learn of.
	for _, revision := range []string{"9", "10", "9", "10", "9007199254740991", "11"} {
		want := "con_1 itm_1 " + revision + "\n"
		select {
		case m := <-sub.Channel():
			if m.Payload != want {
				t.Errorf("hint %q, want %q", m.Payload, want)
			}
		case <-time.After(30 * time.Second):
			t.Fatal("no hint")
		}
	}
	client.Set(t.Context(), key, "garbage", 0)
	f(1, "one", 1, "1\none")
}

func TestPushesRace(t *testing.T) {
	t.Parallel()
	items, client, prefix := newItems(t)
	// which the server has never seen, like one that was restarted
	items.setIfNewer = goredis.NewScript("-- " + prefix + setItemIfNewer)
	const pushes, many = 40, 50
	var wg sync.WaitGroup
	for revision := range int64(pushes) {
		wg.Go(func() {
			batch := make([]observation.ServedItem, many)
			for i := range batch {
				batch[i] = observation.ServedItem{ItemID: ident.ItemID("itm_" + strings.Repeat("x", i+1)),
					RefreshRevision: 1 + revision, Body: []byte("body")}
			}
			if _, err := items.PutItems(t.Context(), "con_1", batch); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for i := range many {
		if got := client.Get(t.Context(), prefix+"item:con_1:itm_"+strings.Repeat("x",
			i+1)).Val(); got != "40\nbody" {
			t.Errorf("item %d: %q", i, got)
		}
	}
}
