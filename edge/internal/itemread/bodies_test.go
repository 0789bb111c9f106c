package itemread

import (
	"context"
	"testing"
	"time"

	"storefront.internal/shared/ident"
)

// What is in memory is there at once; what is not is there when a store answers in time, and a slow answer is
// in memory for the next call.
func TestBodiesAreWhatIsAtHand(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, s *stores, r *Service) {
		items := []ident.ItemID{"itm_memory", "itm_redis", "itm_stored", "itm_gone", "itm_never"}
		s.change(Key{"con_1", "itm_memory"}, 3, false, true)
		expect(t, r, Key{"con_1", "itm_memory"}, 3)
		s.change(Key{"con_1", "itm_redis"}, 1, false, true)
		s.change(Key{"con_1", "itm_stored"}, 1, false, false)
		s.change(Key{"con_1", "itm_gone"}, 2, true, true)
		check := func(when string, want ...bool) {
			t.Helper()
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
			defer cancel()
			began := time.Now()
			for i, got := range r.Bodies(ctx, "con_1", items) {
				if (got != nil) != want[i] {
					t.Errorf("%s: %s: %d bytes", when, items[i], len(got))
				}
			}
			if took := time.Since(began); took > 20*time.Millisecond {
				t.Errorf("%s: took %s", when, took)
			}
		}
		slow := func() { time.Sleep(100 * time.Millisecond) }
		s.set(func() { s.before, s.beforeGet = slow, slow })
		check("the stores are slow", true, false, false, false, false)
		time.Sleep(time.Second)
		check("the loads have ended", true, true, true, false, false)
	})
}
