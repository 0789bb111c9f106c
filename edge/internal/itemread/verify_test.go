package itemread

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
)

// Redis was full and kept revision 17 when an edge answered 19 from PostgreSQL. The process that replaces the
// edge must not answer 17.
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
			s.cached[mine], s.cached[gone] = Version{Revision: 17, Body: body(17)},
				Version{Revision: 4, Body: body(4)}
		})
		r = newService(s)
		expect(t, r, mine, 19)
		expect(t, r, gone, 0)
		synctest.Wait()
		if s.cached[mine].Revision != 19 || s.cached[gone].Revision != 5 {
			t.Error("Redis was not corrected")
		}
	})
}

// A version in Redis is verified when a process first sees it, and again after a minute, without reading its
// body.
func TestVerifiedEachMinute(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, s *stores, r *Service) {
		s.change(mine, 3, false, true)
		expect(t, r, mine, 3)
		s.expectLookups(t, 1, 1)
		for range 3 {
			time.Sleep(5 * time.Second)
			expect(t, r, mine, 3)
			s.expectLookups(t, 1, 0)
		}
		s.set(func() { s.cached[mine] = Version{Revision: 2, Body: body(2)} }) // ignored: PostgreSQL answers
		time.Sleep(5 * time.Second)
		expect(t, r, mine, 3)
		s.expectLookups(t, 1, 1)
		s.set(func() {
			s.rows[mine], s.cached[mine] = Version{Revision: 4, Body: body(4)},
				Version{Revision: 3, Body: body(3)}
		}) // Redis lost a write
		time.Sleep(5 * time.Second)
		expect(t, r, mine, 3)
		time.Sleep(verifyInterval)
		expect(t, r, mine, 4)
		synctest.Wait()
		s.expectLookups(t, 2, 1)
		if s.cached[mine].Revision != 4 {
			t.Error("Redis was not corrected")
		}
		s.set(func() { s.storeDown = true })
		time.Sleep(verifyInterval)
		expect(t, r, mine, 4) // it is not older than an answer
		s.set(func() { s.storeDown = false })
		s.set(func() { s.resets = 1 }) // PostgreSQL ended the session
		s.change(Key{"con_1", "itm_2"}, 2, false, false)
		s.set(func() { s.cached[Key{"con_1", "itm_2"}] = Version{Revision: 1, Body: body(1)} })
		expect(t, r, Key{"con_1", "itm_2"}, 2)
	})
}

// While PostgreSQL is down, a version from Redis is served unverified for a second at a time.
func TestUnverifiedWhileTheStoreIsDown(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, s *stores, r *Service) {
		s.change(mine, 19, false, false)
		s.set(func() { s.cached[mine], s.storeDown = Version{Revision: 17, Body: body(17)}, true })
		expect(t, r, mine, 17)
		s.expectLookups(t, 1, 2)
		if n := testutil.ToFloat64(r.cfg.Metrics.unverified); n != 1 {
			t.Errorf("%v answers were unverified", n)
		}
		s.set(func() { s.storeDown = false })
		expect(t, r, mine, 17)
		time.Sleep(staleTTL)
		expect(t, r, mine, 19)
		s.set(func() { s.cached[mine] = Version{Revision: 17, Body: body(17)} })
		time.Sleep(5 * time.Second)
		expect(t, r, mine, 19)
	})
}

// A PostgreSQL that hangs delays the first reader whose version needs verification, and, for a shorter time,
// one probe in each second after. A reader whose item no copy has fails at once.
func TestHangingStoreIsNotWaitedForByAll(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, s *stores, r *Service) {
		items := []Key{{"con_1", "itm_1"}, {"con_1", "itm_2"}, {"con_1", "itm_3"}, {"con_1", "itm_4"},
			{"con_1", "itm_5"}}
		for _, k := range items {
			s.change(k, 1, false, true)
		}
		s.set(func() { s.storeHangs = true })
		took := func(k Key, want time.Duration) {
			t.Helper()
			began := time.Now()
			expect(t, r, k, 1)
			if got := time.Since(began); got != want {
				t.Errorf("a reader of %s waited %s, want %s", k.Item, got, want)
			}
		}
		took(items[0], verifyTimeout)
		took(items[1], 0)
		time.Sleep(staleTTL)
		var wg sync.WaitGroup
		wg.Go(func() { took(items[2], staleWait) })
		synctest.Wait()
		took(items[3], 0)
		began := time.Now()
		expect(t, r, Key{"con_1", "itm_none"}, -1)
		if got := time.Since(began); got != 0 {
			t.Errorf("a reader of an item without a copy waited %s", got)
		}
		wg.Wait()
		s.set(func() { s.storeHangs = false })
		time.Sleep(staleTTL)
		took(items[4], 0)
		s.set(func() { s.gets, s.reads = 0, 0 })
		time.Sleep(staleTTL)
		for _, k := range items {
			expect(t, r, k, 1)
		}
		s.expectLookups(t, 4, 4) // each unverified one; the last one is verified
	})
}

// A PostgreSQL that answers others is busy and not down: an unverified version is not served.
func TestBusyStoreIsNotDown(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, s *stores, r *Service) {
		s.change(mine, 19, false, false)
		s.set(func() { s.cached[mine] = Version{Revision: 17, Body: body(17)} })
		expect(t, r, Key{"con_1", "itm_none"}, 0) // PostgreSQL answers
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

// A process that stood still until the time of its look-up was over never asked PostgreSQL, so it does not
// know that PostgreSQL is down, and does not answer what Redis alone holds.
func TestAProcessThatStoodStillAnswersNothingUnverified(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, s *stores, r *Service) {
		s.change(mine, 2, false, true)
		s.change(mine, 3, false, false)
		s.set(func() { s.beforeGet = func() { time.Sleep(loadTimeout + time.Second) } })
		expect(t, r, mine, -1)
		s.set(func() { s.beforeGet = nil })
		expect(t, r, mine, 3)
	})
}
