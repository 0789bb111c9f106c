package deliveries_test

import (
	"fmt"
	"testing"
	"time"

	"storefront.internal/shared/deliveries"
)

// TestDeadLettersLeaveWithAge: exactly those leave that died before the instant, the oldest first, some in a
// transaction, and the rest can be replayed as before.
func TestDeadLettersLeaveWithAge(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	for i := range 20 {
		q.enqueueOnly(interaction(shop, "dec_1", fmt.Sprintf("sig_%02d", i)))
	}
	q.compact()
	q.kill("rejected")
	q.admin(`UPDATE delivery.dead SET died_at = now() - substr(id, 5)::int * interval '1 day'`)
	q.admin(`INSERT INTO delivery.dead (connection_id, kind, id, lane, body, created_at, died_at, attempts, reason)
		SELECT connection_id, 2, 'obs_' || substr(id, 5), lane, body, created_at, died_at, attempts, reason
		FROM delivery.dead WHERE id > 'sig_15'`)
	before := time.Now().Add(-10*24*time.Hour + time.Hour)
	for _, want := range []int{3 + 3, 3 + 1, 3, 1, 0} {
		if n, err := q.control.PurgeDead(t.Context(), before, 3); err != nil || n != want {
			t.Errorf("%d are deleted, %v, want %d", n, err, want)
		}
	}
	page, err := q.control.ListDead(t.Context(), deliveries.DeadQuery{})
	if err != nil || len(page.Dead) != 10 || page.Dead[9].ID != "sig_09" {
		t.Errorf("left %+v, %v", page.Dead, err)
	}
}
