package deliveries_test

import (
	"maps"
	"testing"

	"storefront.internal/shared/deliveries"
)

// TestCountLanes checks that each thing that holds deliveries back has a state of its own.
func TestCountLanes(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	q.enqueue(interaction(shop, "a", "sig_a"))
	counts := func() map[string]int64 {
		t.Helper()
		n, err := q.relay.CountLanes(t.Context(), deliveries.Interaction)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	expect := func(state string) {
		t.Helper()
		if n := counts(); !maps.Equal(n, map[string]int64{state: 1}) {
			t.Errorf("the lanes are %v, want one that is %s", n, state)
		}
	}
	expect("ready")
	q.mustLease()
	expect("leased")
	q.expire()
	q.admin("UPDATE delivery.lanes SET not_before = now() + interval '1 hour'")
	expect("resting")
	q.admin("UPDATE delivery.lanes SET lane = 9")
	expect("retry")
}
