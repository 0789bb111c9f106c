package itemread

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
)

// What a fault run found: Redis was full, so it kept revision 17 when an edge answered 19 from PostgreSQL; the process that
// took the edge's place knew of neither, and answered 17.
func TestNotBackwardsAfterARestart(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, s *stores, r *Service) {
		s.change(mine, 17, false, true)
		s.change(mine, 19, false, false)
		gone := Key{"con_1", "itm_2"}
		s.change(gone, 4, false, true)
		s.change(gone, 5, true, false)
		expect(t, r, mine, 19)
		expect(t, r, gone, 0)
		synctest.Wait() // the fills
		s.set(func() {
			s.cached[mine], s.cached[gone] = Version{Revision: 17, Body: body(17)}, Version{Revision: 4, Body: body(4)}
		})
		r = newService(s)
		expect(t, r, mine, 19)
		expect(t, r, gone, 0)
		synctest.Wait()
		if s.cached[mine].Revision != 19 || s.cached[gone].Revision != 5 {
			t.Error("Redis was not put right")
		}
	})
}

// A version in Redis is proven when a process meets it first, and again after a minute, without reading its body.
func TestProvenEachMinute(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, s *stores, r *Service) {
		s.change(mine, 3, false, true)
		expect(t, r, mine, 3)
		s.looked(t, 1, 1)
		for range 3 {
			time.Sleep(5 * time.Second)
			expect(t, r, mine, 3)
			s.looked(t, 1, 0)
		}
		s.set(func() { s.cached[mine] = Version{Revision: 2, Body: body(2)} }) // passed over: PostgreSQL tells
		time.Sleep(5 * time.Second)
		expect(t, r, mine, 3)
		s.looked(t, 1, 1)
		s.set(func() {
			s.rows[mine], s.cached[mine] = Version{Revision: 4, Body: body(4)}, Version{Revision: 3, Body: body(3)}
		}) // it lost a write
		time.Sleep(5 * time.Second)
		expect(t, r, mine, 3)
		time.Sleep(proofLife)
		expect(t, r, mine, 4)
		synctest.Wait()
		s.looked(t, 2, 1)
		if s.cached[mine].Revision != 4 {
			t.Error("Redis was not put right")
		}
		s.set(func() { s.storeDown = true })
		time.Sleep(proofLife)
		expect(t, r, mine, 4) // it is no step back
		s.set(func() { s.storeDown = false })
		s.set(func() { s.resets = 1 }) // PostgreSQL ended the session
		s.change(Key{"con_1", "itm_2"}, 2, false, false)
		s.set(func() { s.cached[Key{"con_1", "itm_2"}] = Version{Revision: 1, Body: body(1)} })
		expect(t, r, Key{"con_1", "itm_2"}, 2)
	})
}

// While PostgreSQL is away Redis is believed, for a second at a time; then it is proven.
func TestBelievedWhileTheStoreIsAway(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, s *stores, r *Service) {
		s.change(mine, 19, false, false)
		s.set(func() { s.cached[mine], s.storeDown = Version{Revision: 17, Body: body(17)}, true })
		expect(t, r, mine, 17)
		s.looked(t, 1, 2)
		if n := testutil.ToFloat64(r.metrics.unproven); n != 1 {
			t.Errorf("%v answers were unproven", n)
		}
		s.set(func() { s.storeDown = false })
		expect(t, r, mine, 17)
		time.Sleep(lateLife)
		expect(t, r, mine, 19)
		s.set(func() { s.cached[mine] = Version{Revision: 17, Body: body(17)} })
		time.Sleep(5 * time.Second)
		expect(t, r, mine, 19)
	})
}

// A PostgreSQL that hangs holds up the first who would prove something, and one more in each second after.
func TestHangingStoreIsNotWaitedForByAll(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, s *stores, r *Service) {
		items := []Key{{"con_1", "itm_1"}, {"con_1", "itm_2"}, {"con_1", "itm_3"}, {"con_1", "itm_4"}, {"con_1", "itm_5"}}
		for _, k := range items {
			s.change(k, 1, false, true)
		}
		s.set(func() { s.hangs = true })
		took := func(k Key, want time.Duration) {
			t.Helper()
			began := time.Now()
			expect(t, r, k, 1)
			if got := time.Since(began); got != want {
				t.Errorf("a reader of %s waited %s, want %s", k.Item, got, want)
			}
		}
		took(items[0], proofTimeout)
		took(items[1], 0)
		time.Sleep(lateLife)
		var wg sync.WaitGroup
		wg.Go(func() { took(items[2], proofTimeout) })
		synctest.Wait()
		took(items[3], 0)
		wg.Wait()
		s.set(func() { s.hangs = false })
		time.Sleep(lateLife)
		took(items[4], 0)
		s.set(func() { s.gets, s.reads = 0, 0 })
		time.Sleep(lateLife)
		for _, k := range items {
			expect(t, r, k, 1)
		}
		s.looked(t, 4, 4) // each that was believed; the last one was proven
	})
}

// PostgreSQL that answers others is busy, not away: what is unproven is not believed.
func TestBusyStoreIsNotAway(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, s *stores, r *Service) {
		s.change(mine, 19, false, false)
		s.set(func() { s.cached[mine] = Version{Revision: 17, Body: body(17)} })
		expect(t, r, Key{"con_1", "itm_none"}, 0) // it answers
		held := make(chan struct{})
		s.set(func() { s.before = func() { <-held } })
		go func() { _, _ = read(t, r, Key{"con_1", "itm_other"}) }()
		synctest.Wait()
		expect(t, r, mine, -1)
		close(held)
		synctest.Wait()
		s.set(func() { s.before = nil })
		expect(t, r, mine, 19)
	}, func(c *Config) { c.MaxLookups = 1 })
}
