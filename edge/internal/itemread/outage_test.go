package itemread

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
)

func TestOutages(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, s *stores, r *Service) {
		other := Key{"con_1", "itm_2"}
		s.change(mine, 1, false, true)
		expect(t, r, mine, 1)
		s.set(func() { s.storeDown = true })
		for range 20 { // PostgreSQL down: Redis and memory serve
			time.Sleep(5 * time.Second)
			expect(t, r, mine, 1)
		}
		expect(t, r, other, -1)
		s.set(func() { s.cacheDown = true })
		for range 20 { // both down: memory serves past its TTL
			time.Sleep(5 * time.Second)
			expect(t, r, mine, 1)
			expect(t, r, mine, 1)
		}
		expect(t, r, other, -1)
		s.set(func() { s.storeDown = false })
		s.change(mine, 2, false, false)
		time.Sleep(time.Second)
		expect(t, r, mine, 2) // Redis down: PostgreSQL serves
		expect(t, r, other, 0)
	})
}

// Stores that hang delay a reader of a document past its time by staleWait, and no reader in the second
// after.
func TestHangingStore(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, s *stores, r *Service) {
		s.change(mine, 1, false, false)
		expect(t, r, mine, 1)
		s.set(func() { s.storeHangs, s.cacheDown = true, true })
		time.Sleep(5 * time.Second)
		took := func(want time.Duration) {
			t.Helper()
			began := time.Now()
			expect(t, r, mine, 1)
			if got := time.Since(began); got != want {
				t.Errorf("a reader waited %s, want %s", got, want)
			}
		}
		took(staleWait)
		took(0)
		time.Sleep(staleTTL)
		took(staleWait)
		const aged = `
# HELP storefront_edge_item_stale_seconds Age past their time to live of items served without a store.
# TYPE storefront_edge_item_stale_seconds histogram
storefront_edge_item_stale_seconds_bucket{le="1"} 2
storefront_edge_item_stale_seconds_bucket{le="10"} 3
storefront_edge_item_stale_seconds_bucket{le="60"} 3
storefront_edge_item_stale_seconds_bucket{le="300"} 3
storefront_edge_item_stale_seconds_bucket{le="900"} 3
storefront_edge_item_stale_seconds_bucket{le="3600"} 3
storefront_edge_item_stale_seconds_bucket{le="14400"} 3
storefront_edge_item_stale_seconds_bucket{le="86400"} 3
storefront_edge_item_stale_seconds_bucket{le="+Inf"} 3
storefront_edge_item_stale_seconds_sum 2.6
storefront_edge_item_stale_seconds_count 3
`
		if err := testutil.CollectAndCompare(r.cfg.Metrics.staleness, strings.NewReader(aged)); err != nil {
			t.Error(err)
		}
		time.Sleep(2 * staleTTL) // the load has timed out, and the next one is a probe
		began := time.Now()
		expect(t, r, Key{"con_1", "itm_2"}, -1)
		if got := time.Since(began); got != verifyTimeout {
			t.Errorf("a reader without a copy waited %s", got)
		}
	})
}

// Older versions in Redis or PostgreSQL than were answered are ignored.
func TestNeverBackwards(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, s *stores, r *Service) {
		s.change(mine, 5, false, true)
		expect(t, r, mine, 5)
		s.set(func() { s.cached[mine] = Version{Revision: 4, Body: body(4)} })
		time.Sleep(5 * time.Second)
		expect(t, r, mine, 5)
		s.expectLookups(t, 2, 2)
		synctest.Wait()
		if s.cached[mine].Revision != 5 {
			t.Error("Redis was not corrected")
		}
		s.set(func() { s.cached[mine], s.storeDown = Version{Revision: 4, Body: body(4)}, true })
		time.Sleep(5 * time.Second)
		expect(t, r, mine, 5) // the newer copy, past its TTL
		s.set(func() { s.storeDown = false; s.rows[mine] = Version{Revision: 3, Body: body(3)} })
		time.Sleep(5 * time.Second)
		expect(t, r, mine, 5)
		r.memory.maxBytes = 0 // the copy is lost, the mark is not
		s.change(Key{"con_1", "itm_2"}, 1, false, true)
		expect(t, r, Key{"con_1", "itm_2"}, 1)
		expect(t, r, mine, -1)
		r.memory.maxBytes = 1 << 20
		s.change(mine, 6, true, false)
		expect(t, r, mine, 0)
		time.Sleep(time.Second)
		expect(t, r, mine, 0) // a deletion is not undone by an older version either
	})
}
