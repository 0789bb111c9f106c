package queueview

import (
	"context"
	"testing"

	"storefront.internal/shared/deliveries"
	"storefront.internal/shared/fault"
	"storefront.internal/shared/ident"
)

type fakeQueue struct {
	Queue
	dead    []deliveries.DeadQuery
	replays []deliveries.ReplayQuery
}

func (f *fakeQueue) Dead(_ context.Context, q deliveries.DeadQuery) (deliveries.DeadPage, error) {
	f.dead = append(f.dead, q)
	return deliveries.DeadPage{}, nil
}

func (f *fakeQueue) Replay(_ context.Context, q deliveries.ReplayQuery) (int, error) {
	f.replays = append(f.replays, q)
	return 1, nil
}

func TestDeadIsBounded(t *testing.T) {
	t.Parallel()
	f := func(limit, want int) {
		t.Helper()
		q := &fakeQueue{}
		_, err := New(q).Dead(t.Context(), deliveries.DeadQuery{Limit: limit})
		if want == 0 && (!fault.Is(err, fault.InvalidRequest) || len(q.dead) != 0) {
			t.Errorf("limit %d: %v", limit, err)
		}
		if want != 0 && (err != nil || q.dead[0].Limit != want) {
			t.Errorf("limit %d became %+v, %v", limit, q.dead, err)
		}
	}
	f(0, 100)
	f(1, 1)
	f(500, 500)
	f(501, 0)
	f(-1, 0)
}

func TestReplayIsBounded(t *testing.T) {
	t.Parallel()
	f := func(connection ident.ConnectionID, signals int, ok bool) {
		t.Helper()
		q := &fakeQueue{}
		n, err := New(q).Replay(t.Context(), deliveries.ReplayQuery{ConnectionID: connection, SignalIDs: make([]ident.SignalID, signals)})
		if ok != (err == nil && n == 1 && len(q.replays) == 1) || !ok && !fault.Is(err, fault.InvalidRequest) {
			t.Errorf("%q and %d signals: %d, %v", connection, signals, n, err)
		}
	}
	f("con_1", 0, true)
	f("", 1, true)
	f("con_1", MaxReplay, true)
	f("", 0, false)
	f("con_1", MaxReplay+1, false)
}
