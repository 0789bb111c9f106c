package deliver

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"storefront.internal/shared/deliveries"
	"storefront.internal/shared/ident"
)

// leasesOf are leases of several connections, one for each group of letters.
func leasesOf(groups ...string) (all []*deliveries.Lease) {
	for i, letters := range groups {
		l := lease(letters)
		l.ConnectionID = ident.ConnectionID(rune('A' + i))
		all = append(all, l)
	}
	return all
}

// TestSharedRequest: lanes that are leased together go in one request, and each gets its own outcomes.
func TestSharedRequest(t *testing.T) {
	t.Parallel()
	f := func(reply func(context.Context, [][]byte) Reply, sent []string, want string) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			store := &fakeStore{leases: leasesOf("abX", "cd", "e"), together: true}
			engine := &script{replies: []func(context.Context, [][]byte) Reply{reply}}
			play(t, store, engine, time.Second)
			if len(store.completed) != 1 || statuses(store.completed[0]) != want ||
				!slices.Equal(engine.sent, sent) {
				t.Errorf("sent %v, completed %+v", engine.sent, store.completed)
			}
			for _, lane := range store.completed[0].Lanes {
				if waits := lane.Delay > 0; waits != (want == "fff ff f" || want == "f?f?f? f?f? f?") {
					t.Errorf("the lane of %s waits %v", lane.Lease.ConnectionID, lane.Delay)
				}
			}
		})
	}
	whole := []string{"abXcde"}
	f(takes, whole, "ddd dd d")
	f(says(500), whole, "fff ff f")
	f(says(401), whole, "  ")
	f(func(context.Context, [][]byte) Reply { return Reply{} }, whole, "f?f?f? f?f? f?")
	refusesX := func(ctx context.Context, bodies [][]byte) Reply {
		if slices.ContainsFunc(bodies, func(b []byte) bool { return string(b) == "X" }) {
			return says(422)(ctx, bodies)
		}
		return takes(ctx, bodies)
	}
	f(refusesX, []string{"abXcde", "abX", "a", "bX", "b", "X", "cde"}, "ddx dd d")
}

// TestIdleWorkersDoNotPoll: however many workers there are, an empty queue costs one look per Poll.
func TestIdleWorkersDoNotPoll(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &fakeStore{}
		w := New(Config{Store: store, Engine: &script{}, RelayID: "r", Workers: 16})
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_ = w.Run(ctx)
		const looks = 16 + 50 // at the start, and each 200 ms
		if store.looks < 50 || store.looks > looks+1 {
			t.Errorf("%d looks", store.looks)
		}
	})
}
