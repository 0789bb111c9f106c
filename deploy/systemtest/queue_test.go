package systemtest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"storefront.internal/deploy/local/services"
)

// queue reads the queue view and picks one connection's slice; a connection that is not listed has an empty one.
func (x *topology) queue(s *shop) (services.Queue, services.Slice, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	q, err := x.api.Queue(ctx)
	if err != nil {
		return q, services.Slice{}, err
	}
	for _, c := range q.Connections {
		if c.ConnectionID == s.connection {
			return q, c, nil
		}
	}
	return q, services.Slice{}, nil
}

// waiting waits for a worker state and for so many pending deliveries of the shop.
func (x *topology) waiting(t *testing.T, s *shop, state string, pending int) (services.Queue, services.Slice) {
	t.Helper()
	var q services.Queue
	var slice services.Slice
	eventually(t, 40*time.Second, fmt.Sprintf("state %s with %d pending", state, pending), func() (err error) {
		if q, slice, err = x.queue(s); err != nil {
			return err
		}
		if q.Worker.State != state || slice.Pending != pending {
			return fmt.Errorf("state %s, %+v", q.Worker.State, slice)
		}
		return nil
	})
	return q, slice
}

// drained waits until nothing of the shop waits any more, and nothing died.
func (x *topology) drained(t *testing.T, s *shop) {
	t.Helper()
	_, slice := x.waiting(t, s, "running", 0)
	if slice.DeadLast24h != 0 || slice.UnconfirmedCreations != 0 {
		t.Errorf("the queue is empty and yet %+v", slice)
	}
}
