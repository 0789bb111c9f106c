package systemtest

import (
	"syscall"
	"testing"
	"time"
)

// stall is how long a stopped process stands still: longer than the lease of a claim.
const stall = 15 * time.Second

// An edge dies, or stands still for 15 s, at each point of intake; the client sends the batch again to the other edge. Every
// signal is stored once, none is lost, and no two answers say `accepted`.
func TestEdgeCrash(t *testing.T) {
	t.Parallel()
	x := newTopology(t)
	other := x.edge()
	// An edge that finds an empty Redis beside a store that is in use asks the ledger too, for an hour, and a resend is a
	// `duplicate` as soon as its record is stored. Shown here are the claims alone, so the first request comes before the relay.
	first := x.newShop()
	first.must(other, cartBatch(first.recommend(other), 1))
	x.relay()
	for _, point := range []string{"intake.before_claim", "intake.claimed", "intake.produced", "intake.confirmed"} {
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

func (x *topology) crashEdge(other *node, point, mode string) {
	t := x.t
	t.Helper()
	doomed := x.edge(crash(point, mode))
	s := x.newShop()
	s.t = t
	batch := cartBatch(s.recommend(other), 5)

	first := make(chan answer, 1)
	go func() {
		a, _ := s.send(doomed, batch, time.Minute) // no answer comes from a process that died
		first <- a
	}()
	if mode == "kill" {
		eventually(t, 20*time.Second, "crash at "+point, doomed.dead)
	} else {
		eventually(t, 20*time.Second, "stop at "+point, doomed.stopped)
		stopped := time.AfterFunc(stall, func() { _ = doomed.Signal(syscall.SIGCONT) })
		defer stopped.Stop()
	}
	again := s.resend(other, batch, 40*time.Second)
	before := <-first

	accepted := before.count("accepted") + again.count("accepted")
	want := len(batch)
	if point == "intake.confirmed" && mode == "kill" {
		want = 0 // the answer that said so died with the edge
	}
	if accepted != want {
		t.Errorf("%d of %d signals were answered `accepted`, want %d:\nfirst %+v\nagain %+v", accepted, len(batch), want, before, again)
	}
	if n := again.count("rejected"); n != 0 {
		t.Errorf("the resend was rejected: %+v", again)
	}
	x.delivered(t, s, idsOf(batch), time.Minute)
}
