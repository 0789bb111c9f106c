package deliveries_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"storefront.internal/shared/deliveries"
	"storefront.internal/shared/fault"
)

func (q *queue) beat(id string, c *deliveries.Credential) {
	q.t.Helper()
	r := deliveries.Relay{ID: id}
	if c != nil {
		r.Configured, r.Credential = true, *c
	}
	if err := q.relay.Heartbeat(context.Background(), r); err != nil {
		q.t.Fatal(err)
	}
}

func (q *queue) state(want deliveries.WorkerState) deliveries.Worker {
	q.t.Helper()
	w := q.view().Worker
	if w.State != want {
		q.t.Fatalf("the worker is %s, want %s", w.State, want)
	}
	if (w.State == deliveries.Blocked) == w.BlockedAt.IsZero() {
		q.t.Fatalf("%s since %v", w.State, w.BlockedAt)
	}
	return w
}

func (q *queue) do(err error) {
	q.t.Helper()
	if err != nil {
		q.t.Fatal(err)
	}
}

func (q *queue) blocked(tq deliveries.LeaseQuery) {
	q.t.Helper()
	if l, err := q.relay.Lease(context.Background(), tq); !errors.Is(err, deliveries.ErrBlocked) {
		q.t.Fatalf("lease: %v, %v; want it blocked", l, err)
	}
}

// refusal is a 401 to what was leased just now.
func refusal() deliveries.Refusal {
	return deliveries.Refusal{Credential: token, LeasedAt: time.Now().Add(time.Hour)}
}

// TestLateRefusal: a late answer to an older request neither withdraws the operator's probe nor blocks again.
func TestLateRefusal(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	q := newQueue(t)
	q.beat("a", &token)
	q.enqueue(interaction(shop, "dec_1", "sig_1"), interaction(other, "dec_2", "sig_2"))
	slow, quick := q.mustLease(), q.mustLease()
	late := deliveries.Refusal{Credential: token, LeasedAt: slow.LeasedAt}
	q.do(q.relay.Block(ctx, deliveries.Refusal{Credential: token, LeasedAt: quick.LeasedAt}))
	q.complete(quick)
	since := q.state(deliveries.Blocked).BlockedAt
	q.do(q.control.Resume(ctx))
	q.do(q.relay.Block(ctx, late))
	if again := q.state(deliveries.Blocked).BlockedAt; !again.Equal(since) {
		t.Errorf("a late 401 moved blocked_at from %v to %v", since, again)
	}
	probe := q.mustLease()
	if !probe.Probe {
		t.Fatal("the probe was lost")
	}
	q.do(q.relay.Block(ctx, late)) // while the probe is under way
	q.do(q.relay.Unblock(ctx, token))
	q.do(q.relay.Block(ctx, late))
	q.state(deliveries.Running)
	q.complete(probe)
	fresh := q.mustLease()
	q.do(q.relay.Block(ctx, deliveries.Refusal{Credential: token, LeasedAt: fresh.LeasedAt}))
	if again := q.state(deliveries.Blocked).BlockedAt; !again.After(since) {
		t.Errorf("blocked anew at %v, before at %v", again, since)
	}
}

func TestBlockByCredential(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	q := newQueue(t)
	q.state(deliveries.Disabled)
	q.beat("a", &token)
	q.state(deliveries.Running)
	if err := q.control.Resume(ctx); !fault.Is(err, fault.NotBlocked) {
		t.Errorf("resume while running: %v", err)
	}
	q.enqueue(interaction(shop, "dec_1", "sig_1"))
	l := q.mustLease()
	q.do(q.relay.Block(ctx, refusal()))
	q.complete(l)
	since := q.state(deliveries.Blocked).BlockedAt
	q.blocked(query())
	q.do(q.relay.Block(ctx, refusal()))
	if again := q.state(deliveries.Blocked).BlockedAt; !again.Equal(since) {
		t.Errorf("a second 401 moved blocked_at from %v to %v", since, again)
	}
	if n := scan[int](q, `SELECT attempts FROM delivery.entries`); n != 0 {
		t.Errorf("%d attempts lost", n)
	}

	// The relay comes back with another credential; a late answer to the old one changes nothing for it.
	renewed := deliveries.Credential{9}
	q.do(q.relay.MarkStopped(ctx, "a"))
	q.state(deliveries.Blocked)
	q.beat("b", &renewed)
	q.do(q.relay.Block(ctx, refusal()))
	q.state(deliveries.Running)
	tq := query()
	tq.Credential = renewed
	if l = q.lease(tq); l == nil || l.Probe {
		t.Errorf("took %+v with the new credential", l)
	}
}

func TestResumeProbesOnce(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	q := newQueue(t)
	q.beat("a", &token)
	q.enqueue(interaction(shop, "dec_1", "sig_1"), interaction(other, "dec_2", "sig_2"))
	q.do(q.relay.Block(ctx, refusal()))
	since := q.state(deliveries.Blocked).BlockedAt

	q.do(q.control.Resume(ctx))
	q.state(deliveries.Blocked)
	l := q.mustLease()
	if !l.Probe {
		t.Fatal("the first lease after a resume is no probe")
	}
	q.blocked(query())
	q.do(q.relay.Block(ctx, deliveries.Refusal{Credential: token, LeasedAt: l.LeasedAt, Probe: true}))
	q.complete(l)
	if again := q.state(deliveries.Blocked).BlockedAt; !again.Equal(since) {
		t.Errorf("the probe's 401 moved blocked_at from %v to %v", since, again)
	}
	q.do(q.relay.AllowProbeAfter(ctx, token, 0))
	q.blocked(query()) // what was refused stays refused until the next resume

	q.do(q.control.Resume(ctx))
	l = q.mustLease()
	q.do(q.relay.AllowProbeAfter(ctx, token, 0)) // no answer: another probe may go
	q.complete(l)
	if l = q.mustLease(); !l.Probe {
		t.Error("the second probe is none")
	}
	q.do(q.relay.Unblock(ctx, token))
	q.state(deliveries.Running)
	if l = q.mustLease(); l.Probe {
		t.Error("a probe while running")
	}
}

func TestResumeWithoutWork(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	q := newQueue(t)
	q.beat("a", &token)
	q.do(q.relay.Block(ctx, refusal()))
	q.do(q.control.Resume(ctx))
	if l := q.lease(query()); l != nil {
		t.Fatalf("took %v of nothing", ids(l))
	}
	q.enqueue(interaction(shop, "dec_1", "sig_1"))
	if l := q.mustLease(); !l.Probe {
		t.Error("the probe was lost while there was nothing to probe with")
	}
}

func TestStateOfSeveralRelays(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	q := newQueue(t)
	good := deliveries.Credential{7}
	q.beat("old", &token)
	q.do(q.relay.Block(ctx, refusal()))
	q.beat("none", nil)
	q.state(deliveries.Blocked) // one is configured, and blocked
	q.beat("new", &good)
	q.state(deliveries.Running)
	q.admin(
		`UPDATE delivery.relays SET heartbeat_at = heartbeat_at - interval '1 minute' WHERE relay_id <> 'none'`,
	)
	q.state(deliveries.Disabled)
	q.admin(
		`UPDATE delivery.relays SET heartbeat_at = heartbeat_at - interval '2 minutes' WHERE relay_id = 'none'`,
	)
	q.admin(
		`UPDATE delivery.relays SET heartbeat_at = heartbeat_at - interval '3 minutes' WHERE relay_id = 'new'`,
	)
	q.state(deliveries.Blocked) // without a heartbeat the last one counts
}

// TestDeadLetterNeedsAttemptsAndTime: eight attempts, and 24 hours in which the worker was running.
func TestDeadLetterNeedsAttemptsAndTime(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	q.beat("a", &token)
	q.enqueue(interaction(shop, "dec_1", "sig_1"))
	fail := func() deliveries.Completed {
		t.Helper()
		q.due()
		l := q.mustLease()
		return q.complete(l, all(l, deliveries.Outcome{Status: deliveries.Failed, Reason: "http_503"})...)
	}
	for range 9 {
		if done := fail(); done.DeadLettered != 0 {
			t.Fatal("died before 24 hours")
		}
	}
	// A day passes in which the worker was blocked.
	q.do(q.relay.Block(context.Background(), refusal()))
	q.admin(`UPDATE delivery.entries SET failed_since = failed_since - interval '25 hours', attempts = 6`)
	q.admin(`UPDATE delivery.clock SET held_since = held_since - interval '2 hours'`)
	q.do(q.relay.Unblock(context.Background(), token))
	if held := scan[time.Duration](q, `SELECT held FROM delivery.clock`); held < 2*time.Hour ||
		held > 3*time.Hour {
		t.Fatalf("the clock stood still for %v, want two hours", held)
	}
	for range 3 {
		if done := fail(); done.DeadLettered != 0 {
			t.Fatal("died, counting the time in which the worker was blocked")
		}
	}
	q.admin(`UPDATE delivery.entries SET failed_since = failed_since - interval '1 hour', attempts = 6`)
	if done := fail(); done.DeadLettered != 0 {
		t.Fatal("died at the seventh attempt")
	}
	if done := fail(); done.DeadLettered != 1 {
		t.Fatal("did not die at the eighth attempt after 24 hours")
	}
	if reason := scan[string](q, `SELECT reason FROM delivery.dead`); reason != "given_up: http_503" {
		t.Errorf("reason %q", reason)
	}
	q.recount()
}
