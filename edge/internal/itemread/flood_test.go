package itemread

import (
	"fmt"
	"net/netip"
	"sync"
	"testing"
	"time"

	"storefront.internal/edge/internal/ratelimit"
	"storefront.internal/shared/fault"
	"storefront.internal/shared/ident"
)

// A flood of reads of items that no cache holds has a bounded number of look-ups in flight; the others fail
// soon.
func TestLookUpsInFlightAreBounded(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, s *stores, r *Service) {
		s.change(mine, 1, false, true)
		s.set(func() { s.storeHangs = true })
		var wg sync.WaitGroup
		for i := range 500 {
			wg.Go(func() { expect(t, r, Key{"con_1", ident.ItemID(fmt.Sprint("itm_x", i))}, -1) })
		}
		time.Sleep(slotWait)
		expect(t, r, mine, 1) // what Redis has is served meanwhile
		wg.Wait()
		if s.most != 16 || s.reads != 16 {
			t.Errorf("%d look-ups, %d at once", s.reads, s.most)
		}
	}, func(c *Config) { c.MaxLookups = 16 })
}

// Only look-ups that find nothing spend the budget: first that of the client, then that of the key.
func TestMissBudget(t *testing.T) {
	t.Parallel()
	limiter := func(c *Config) {
		c.Misses = ratelimit.New(ratelimit.Config{Now: c.Now,
			PerKey:     ratelimit.Quota{PerSecond: 4, Burst: 40},
			PerAddress: ratelimit.Quota{PerSecond: 1, Burst: 10}})
	}
	play(t, func(t *testing.T, s *stores, r *Service) {
		n := 0
		ask := func(address string, k Key) fault.Code {
			_, err := r.Read(t.Context(), Request{ConnectionID: k.Connection, ItemID: k.Item,
				Client: ratelimit.Subject{Key: "key_1", Address: netip.MustParseAddr(address)}})
			if err == nil {
				return ""
			}
			return fault.From(err).Code
		}
		flood := func(address string, times int, want fault.Code) {
			t.Helper()
			for range times {
				n++
				if got := ask(address, Key{"con_1", ident.ItemID(fmt.Sprint("itm_x", n))}); got != want {
					t.Fatalf("miss %d: %s, want %s", n, got, want)
				}
			}
		}
		for i := range 100 {
			s.change(Key{"con_1", ident.ItemID(fmt.Sprint("itm_", i))}, 1, false, false)
		}
		for i := range 50 { // existing items cost nothing
			if got := ask("10.0.0.1", Key{"con_1", ident.ItemID(fmt.Sprint("itm_", i))}); got != "" {
				t.Fatal(got)
			}
		}
		flood("10.0.0.1", 10, fault.NotFound)
		before := s.reads
		flood("10.0.0.1", 500, fault.RateLimited)
		if s.reads != before {
			t.Errorf("%d look-ups beyond the budget", s.reads-before)
		}
		if got := ask("10.0.0.1", mine); got != "" { // known to exist: from memory
			t.Error(got)
		}
		time.Sleep(6 * time.Second)
		if got := ask("10.0.0.1", mine); got != "" {
			t.Error(got)
		}
		flood("10.0.0.2", 10, fault.NotFound) // another client of the key
		if got := ask("10.0.0.3", Key{"con_1", "itm_77"}); got != "" {
			t.Error(got)
		}
		for i := range 3 {
			flood(fmt.Sprint("10.0.1.", i), 10, fault.NotFound)
		}
		flood("10.0.2.1", 1, fault.RateLimited) // the key's budget is spent
	}, limiter)
}

// A reader with its own budget left does not get the refusal of the reader that started the load.
func TestRefusalIsNotShared(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, s *stores, r *Service) {
		s.change(mine, 1, false, false)
		poor, rich := ratelimit.Subject{Key: "key_1", Address: netip.MustParseAddr("10.0.0.1")},
			ratelimit.Subject{Key: "key_1", Address: netip.MustParseAddr("10.0.0.2")}
		r.cfg.Misses.Charge(poor, 10)
		s.beforeGet = func() { time.Sleep(time.Millisecond) }
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := r.Read(t.Context(),
				Request{ConnectionID: mine.Connection, ItemID: mine.Item, Client: poor}); !fault.Is(err,
				fault.RateLimited) {
				t.Errorf("error %v", err)
			}
		})
		time.Sleep(100 * time.Microsecond)
		if doc, err := r.Read(t.Context(),
			Request{ConnectionID: mine.Connection, ItemID: mine.Item, Client: rich}); err != nil ||
			doc.Revision != 1 {
			t.Errorf("error %v", err)
		}
		wg.Wait()
	}, func(c *Config) {
		c.Misses = ratelimit.New(ratelimit.Config{Now: c.Now,
			PerKey:     ratelimit.Quota{PerSecond: 1, Burst: 100},
			PerAddress: ratelimit.Quota{PerSecond: 1, Burst: 10}})
	})
}
