package systemtest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"storefront.internal/deploy/stack/client"
)

// queue reads the queue view and the slice of one connection; a connection that is not listed has an empty
// one.
func (x *deployment) queue(s *storefront) (client.Queue, client.Slice, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	q, err := x.api.ViewQueue(ctx)
	if err != nil {
		return q, client.Slice{}, err
	}
	for _, c := range q.Connections {
		if c.ConnectionID == s.ConnectionID {
			return q, c, nil
		}
	}
	return q, client.Slice{}, nil
}

// awaitQueue waits for a worker state and a number of pending deliveries of the connection.
func (x *deployment) awaitQueue(t *testing.T, s *storefront, state string,
	pending int) (client.Queue, client.Slice) {
	t.Helper()
	var q client.Queue
	var slice client.Slice
	eventually(t, 40*time.Second, fmt.Sprintf("state %s with %d pending", state, pending),
		func() (err error) {
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

// awaitDrained waits until nothing of the connection is pending, and checks that nothing was dead-lettered.
func (x *deployment) awaitDrained(t *testing.T, s *storefront) {
	t.Helper()
	_, slice := x.awaitQueue(t, s, "running", 0)
	if slice.DeadLast24h != 0 || slice.UnconfirmedCreations != 0 {
		t.Errorf("the queue is empty and yet %+v", slice)
	}
}
