package itemread

import (
	"testing"
	"time"

	"storefront.internal/shared/ident"
)

func TestOwned(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, s *stores, r *Service) {
		items := []ident.ItemID{"itm_memory", "itm_redis", "itm_stored", "itm_gone", "itm_gone2",
			"itm_foreign", "itm_never"}
		s.change(Key{"con_1", "itm_memory"}, 1, false, true)
		expect(t, r, Key{"con_1", "itm_memory"}, 1)
		s.change(Key{"con_1", "itm_redis"}, 1, false, true)
		s.change(Key{"con_1", "itm_stored"}, 1, false, false)
		s.change(Key{"con_1", "itm_gone"}, 2, true, true)
		s.change(Key{"con_1", "itm_gone2"}, 2, true, false)
		s.change(Key{"con_2", "itm_foreign"}, 1, false, true)
		check := func(want ...bool) {
			t.Helper()
			for i, got := range r.Owned(t.Context(), "con_1", items) {
				if got != want[i] {
					t.Errorf("%s: %t", items[i], got)
				}
			}
		}
		s.expectLookups(t, 1, 1)
		check(true, true, true, false, false, false, false)
		s.expectLookups(t, 0, 1)
		check(true, true, true, false, false, false, false)
		s.expectLookups(t, 0, 0) // remembered
		time.Sleep(5 * time.Second)
		s.set(func() { s.storeDown = true })
		check(true, true, true, false, true, true, true) // only Redis answers
		time.Sleep(5 * time.Second)
		s.set(func() { s.cacheDown = true })
		check(true, true, true, true, true, true, true)
		if r.Owned(t.Context(), "con_1", nil) == nil {
			t.Error("no answer for no items")
		}
		expect(t, r, Key{"con_1", "itm_never"}, -1)
		s.set(func() { s.storeDown, s.cacheDown = false, false })
		if r.Owned(t.Context(), "con_1", items)[6] {
			t.Error("itm_never is owned")
		}
		s.expectLookups(t, 1, 4)                   // the failed ones too
		expect(t, r, Key{"con_1", "itm_never"}, 0) // its absence is cached
		s.expectLookups(t, 0, 0)
	})
}
