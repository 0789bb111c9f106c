package systemtest

import (
	"strings"
	"testing"
	"time"

	"storefront.internal/deploy/stack"
)

// A relay dies or is paused before and after its COMMIT and around a delivery, and another one of its group
// goes on. Each case is a consumer group with a database and an engine of its own; one edge feeds them all.
func TestRelayCrash(t *testing.T) {
	t.Parallel()
	x := newDeployment(t)
	edge := x.edge()
	s := x.newStorefront()
	cases := []string{
		"sink.before_commit kill", "sink.after_commit kill", "deliver.leased kill", "deliver.sent kill",
		"deliver.answered kill",
		"sink.before_commit stop", "sink.after_commit stop", "deliver.sent stop",
	}
	var siblings []*deployment
	for range cases {
		siblings = append(siblings, x.sibling())
	}
	doomed := make([]*stack.Process, len(cases))
	for i, c := range cases {
		point, mode, _ := strings.Cut(c, " ")
		doomed[i] = siblings[i].relay(crash(point, mode), "RELAY_LEASE=5s")
	}
	d := s.recommend(edge)
	var ids []string
	for range 20 {
		batch := cartBatch(d, 10)
		s.must(edge, batch)
		ids = append(ids, idsOf(batch)...)
	}
	for i, c := range cases {
		t.Run(c, func(t *testing.T) {
			t.Parallel()
			y := *siblings[i]
			y.t = t
			y.rescue(doomed[i], s, ids)
		})
	}
}

// sibling is a deployment that reads the same topics from here on into a database of its own.
func (x *deployment) sibling() *deployment {
	t := x.t
	t.Helper()
	y := newDatabase(t)
	skipBacklog(t, y)
	return y
}

func (x *deployment) rescue(doomed *stack.Process, s *storefront, ids []string) {
	t := x.t
	t.Helper()
	stalls := strings.HasSuffix(t.Name(), "stop")
	if stalls {
		eventually(t, 60*time.Second, "stop", paused(doomed))
	} else {
		eventually(t, 60*time.Second, "crash", dead(doomed))
	}
	over := time.After(stall)
	x.relay("RELAY_LEASE=5s")
	x.awaitDelivered(t, s, ids, 90*time.Second)
	if !stalls {
		return
	}
	// The paused relay goes on with work that the other one has done, and changes nothing.
	<-over
	if err := doomed.Resume(); err != nil {
		t.Fatal(err)
	}
	check(t, doomed.Ready(t.Context()))
	x.stop(doomed)
	x.awaitDelivered(t, s, ids, time.Second)
}
