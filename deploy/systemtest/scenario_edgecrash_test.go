package systemtest

import (
	"net/http"
	"testing"
	"time"

	"storefront.internal/deploy/stack"
)

// stall is how long a paused process is paused: longer than the lease of a claim.
const stall = 15 * time.Second

// An edge dies or is paused for 15 s at each failpoint of recording signals; the client sends the batch again
// to the other edge. Every signal is stored once, none is lost, and no two responses say `accepted`.
func TestEdgeCrash(t *testing.T) {
	t.Parallel()
	x := newDeployment(t)
	other := x.edge()
	// An edge that finds an empty Redis beside a used database asks the ledger too, for an hour, and a resend
	// is a `duplicate` as soon as its record is stored. This test is about the claims alone, so the first
	// request comes before the relay.
	first := x.newStorefront()
	first.must(other, cartBatch(first.recommend(other), 1))
	x.relay()
	for _, point := range []string{"intake.before_claim", "intake.claimed", "intake.produced",
		"intake.confirmed"} {
		for _, mode := range []string{"kill", "stop"} {
			t.Run(point+" "+mode, func(t *testing.T) {
				t.Parallel()
				y := *x // the same deployment, with this test's clean-up
				y.t = t
				y.crashEdge(other, point, mode)
			})
		}
	}
}

// sendUntilHit sends a batch until an answer other than 503 comes or the process has ended. An edge on a busy
// machine may answer 503 before the request reaches the failpoint, when its first look-up of partitions takes
// longer than it waits for them. No answer comes from a process that died.
func (s *storefront) sendUntilHit(doomed *stack.Process, batch any) response {
	for until := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
		a, err := s.send(doomed, batch, time.Minute)
		if err != nil || a.Status != http.StatusServiceUnavailable || time.Now().After(until) {
			return a
		}
	}
}

func (x *deployment) crashEdge(other *stack.Process, point, mode string) {
	t := x.t
	t.Helper()
	doomed := x.edge(crash(point, mode))
	s := x.newStorefront()
	s.t = t
	batch := cartBatch(s.recommend(other), 5)

	first := make(chan response, 1)
	go func() { first <- s.sendUntilHit(doomed, batch) }()
	if mode == "kill" {
		eventually(t, time.Minute, "crash at "+point, dead(doomed))
	} else {
		eventually(t, time.Minute, "stop at "+point, paused(doomed))
		stopped := time.AfterFunc(stall, func() { _ = doomed.Resume() })
		defer stopped.Stop()
	}
	again := s.resend(other, batch, time.Minute)
	before := <-first

	accepted := before.count("accepted") + again.count("accepted")
	want := len(batch)
	if point == "intake.confirmed" && mode == "kill" {
		want = 0 // the answer that said so died with the edge
	}
	if accepted != want {
		t.Errorf("%d of %d signals were answered `accepted`, want %d:\nfirst %+v\nagain %+v", accepted,
			len(batch), want, before, again)
	}
	if n := again.count("rejected"); n != 0 {
		t.Errorf("the resend was rejected: %+v", again)
	}
	x.awaitDelivered(t, s, idsOf(batch), time.Minute)
}
