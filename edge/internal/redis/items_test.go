package redis

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	goredis "github.com/redis/go-redis/v9"

	"storefront.internal/edge/internal/itemread"
	"storefront.internal/edge/internal/redisbatch"
	"storefront.internal/shared/ident"
	"storefront.internal/shared/settings"
)

var thing = itemread.Key{Connection: "con_1", Item: "itm_1"}

func newItems(t testing.TB, client goredis.UniversalClient, prefix string) *Items {
	return NewItems(client, newBatcher(t, client), prefix)
}

func expectItem(t *testing.T, i *Items, k itemread.Key, revision int64, body string) {
	t.Helper()
	v, found, err := i.Item(t.Context(), k)
	if err != nil || found != (revision > 0) || v.Revision != revision || string(v.Body) != body {
		t.Errorf("%d %.40q, %t, %v; want %d %.40q", v.Revision, v.Body, found, err, revision, body)
	}
}

func fill(t *testing.T, i *Items, k itemread.Key, revision int64, body string) {
	t.Helper()
	if err := i.Fill(t.Context(), k, itemread.Version{Revision: revision, Body: []byte(body)}); err != nil {
		t.Fatal(err)
	}
}

// both runs f on the real server, and on the stand-in of the local stack.
func both(t *testing.T, f func(t *testing.T, i *Items, client goredis.UniversalClient)) {
	t.Run("real", func(t *testing.T) {
		t.Parallel()
		client, prefix := open(t)
		f(t, newItems(t, client, prefix), client)
	})
	t.Run("in process", func(t *testing.T) {
		t.Parallel()
		server := miniredis.RunT(t)
		client := redisbatch.NewClient(settings.Redis{RedisAddrs: []string{server.Addr()}}, testTimeout)
		defer func() { _ = client.Close() }()
		f(t, newItems(t, client, "sf:"), client)
	})
}

func TestItems(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, i *Items, client goredis.UniversalClient) {
		expectItem(t, i, thing, 0, "")
		fill(t, i, thing, 9, "{nine\n}")
		expectItem(t, i, thing, 9, "{nine\n}")
		expectItem(t, i, itemread.Key{Connection: "con_2", Item: "itm_1"}, 0, "")
		for _, step := range []struct {
			revision int64
			body     string
			want     int64
		}{{8, "{8}", 9}, {9, "{other}", 9}, {10, "{10}", 10}, {9, "{9}", 10}, {100, "", 100},
			{99, "{99}", 100}, {101, "{101}", 101},
			{9007199254740993, "{a}", 9007199254740993}, {9007199254740992, "{b}", 9007199254740993},
			{9007199254740994, "{c}", 9007199254740994}} {
			fill(t, i, thing, step.revision, step.body)
			if v, found, err := i.Item(t.Context(), thing); err != nil || !found || v.Revision != step.want {
				t.Errorf("after %d: %d, %t, %v; want %d", step.revision, v.Revision, found, err, step.want)
			}
		}
		name := i.record(thing.Connection, thing.Item)
		if ttl := client.PTTL(t.Context(), name).Val(); ttl <= itemTTL-time.Minute || ttl > itemTTL {
			t.Errorf("TTL %s", ttl)
		}
		for _, broken := range []string{"", "x", "12", "0\n{}", "-1\n{}", "\n{}", "1x\n{}",
			"99999999999999999999999\n{}"} {
			client.Set(t.Context(), name, broken, time.Hour)
			if v, found, err := i.Item(t.Context(), thing); err == nil || found {
				t.Errorf("%q: %v, %t", broken, v, found)
			}
			// longer than any revision
			if fill(t, i, thing, 3, "{3}"); broken != "99999999999999999999999\n{}" {
				expectItem(t, i, thing, 3, "{3}")
			}
		}
	})
}

// A server that does not take the newer version keeps no older one either. In operation the server is full;
// here the command is wrong, which fails at the same place.
func TestFillThatFails(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, i *Items, client goredis.UniversalClient) {
		name := []string{i.record(thing.Connection, thing.Item)}
		fill(t, i, thing, 17, "{17}")
		if err := client.Eval(t.Context(), fillScript, name, "16", "{16}", 0).Err(); err != nil {
			t.Error(err) // an older one changes nothing
		}
		expectItem(t, i, thing, 17, "{17}")
		if err := client.Eval(t.Context(), fillScript, name, "19", "{19}", 0).Err(); err == nil {
			t.Error("the failure is not reported")
		}
		expectItem(t, i, thing, 0, "")
		fill(t, i, thing, 19, "{19}")
		expectItem(t, i, thing, 19, "{19}")
	})
}

// The greatest revision wins, in whatever order concurrent writers come.
func TestFillsAtOnce(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, i *Items, _ goredis.UniversalClient) {
		var wg sync.WaitGroup
		for w := range 8 {
			wg.Go(func() {
				for n := range 25 {
					revision := int64(1 + (n*8+w*37)%200)
					body := append([]byte(strconv.FormatInt(revision, 10)),
						bytes.Repeat([]byte{' '}, 1000)...)
					if err := i.Fill(t.Context(), thing,
						itemread.Version{Revision: revision, Body: body}); err != nil {
						t.Error(err)
					}
				}
			})
		}
		var last int64
		for range 100 {
			v, found, err := i.Item(t.Context(), thing)
			if err != nil || found &&
				(v.Revision < last || string(bytes.TrimSpace(v.Body)) != strconv.FormatInt(v.Revision, 10)) {
				t.Errorf("%d after %d, %.10q, %v", v.Revision, last, v.Body, err)
			}
			last = v.Revision
		}
		wg.Wait()
	})
}

func TestPresent(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, i *Items, _ goredis.UniversalClient) {
		fill(t, i, thing, 1, `{"item":{"item_id":"itm_1"}}`)
		fill(t, i, itemread.Key{Connection: "con_1", Item: "itm_2"}, 1<<62, "")
		fill(t, i, itemread.Key{Connection: "con_2", Item: "itm_3"}, 1, `{"item":{"item_id":"itm_3"}}`)
		got, err := i.Present(t.Context(), "con_1",
			[]ident.ItemID{"itm_1", "itm_2", "itm_3", "itm_4", "itm_1"})
		if want := []itemread.Presence{itemread.Exists, itemread.Deleted, itemread.Unknown, itemread.Unknown,
			itemread.Exists}; err != nil || !slices.Equal(got, want) {
			t.Errorf("%v, %v", got, err)
		}
	})
}

func TestItemHints(t *testing.T) {
	t.Parallel()
	client, prefix := open(t)
	i := newItems(t, client, prefix)
	got := make(chan string, 100)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- i.Hints(ctx,
			func(k itemread.Key, revision int64) {
				got <- fmt.Sprint(k.Connection, " ", k.Item, " ",
					revision)
			})
	}()
	// until it is subscribed
	for client.Publish(t.Context(), prefix+"items:changed", "con_0 itm_0 1").Val() == 0 {
	}
	if hint := <-got; hint != "con_0 itm_0 1" {
		t.Error(hint)
	}
	client.Publish(t.Context(), prefix+"items:changed",
		"con_1 itm_1 7\n\nx\ncon_1 itm_2\ncon_1 itm_2 x\nstr_1 itm_1 1\ncon_1 var_1 1\ncon_1 itm_2 8\n")
	for _, want := range []string{"con_1 itm_1 7", "con_1 itm_2 8"} {
		if hint := <-got; hint != want {
			t.Errorf("%q, want %q", hint, want)
		}
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestItemsWithoutRedis(t *testing.T) {
	t.Parallel()
	server := miniredis.RunT(t)
	client := redisbatch.NewClient(settings.Redis{RedisAddrs: []string{server.Addr()}}, redisbatch.Timeout)
	defer func() { _ = client.Close() }()
	i := newItems(t, client, "sf:")
	server.Close()
	for range 5 {
		if _, found, err := i.Item(t.Context(), thing); err == nil || found {
			t.Errorf("%t, %v", found, err)
		}
	}
	if err := i.Fill(t.Context(), thing, itemread.Version{Revision: 1}); err == nil {
		t.Error("filled")
	}
	if _, err := i.Present(t.Context(), "con_1", []ident.ItemID{"itm_1"}); err == nil {
		t.Error("present")
	}
}
