package systemtest

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"storefront.internal/deploy/stack"
	"storefront.internal/deploy/stack/client"
)

const racers = 64

// 64 clients send the same batch at the same time over two edges, and then overlapping parts of another one:
// each id is accepted exactly once, no `duplicate` is false, and the 99th percentile of the latency stays
// under a second.
func TestConcurrentBatches(t *testing.T) {
	x := newDeployment(t)
	edges := []*stack.Process{x.edge(), x.edge()}
	x.relay()
	s := x.newStorefront()
	d := s.recommend(edges[0])

	var took []time.Duration
	var ids []string
	for round := range soak(100, 1000) {
		batch := cartBatch(d, 8)
		ids = append(ids, idsOf(batch)...)
		parts := identical
		if round%2 == 1 {
			parts = overlapping
		}
		took = append(took, raceRound(t, s, edges, batch, parts)...)
		if t.Failed() {
			t.FailNow()
		}
	}
	slices.Sort(took)
	p50, p99, worst := took[len(took)/2], took[len(took)*99/100], took[len(took)-1]
	t.Logf("%d requests: p50 %s, p99 %s, longest %s", len(took), p50, p99, worst)
	if p99 >= time.Second {
		t.Errorf("p99 is %s", p99)
	}
	x.awaitDelivered(t, s, ids, time.Minute)
}

func identical(batch []client.Signal) []client.Signal { return batch }

// overlapping is a random half of the batch in random order.
func overlapping(batch []client.Signal) []client.Signal {
	part := slices.Clone(batch)
	rand.Shuffle(len(part), func(i, j int) { part[i], part[j] = part[j], part[i] })
	return part[:len(part)/2]
}

// raceRound sends everything at once and checks the responses.
func raceRound(t *testing.T, s *storefront, edges []*stack.Process, batch []client.Signal,
	part func([]client.Signal) []client.Signal) []time.Duration {
	t.Helper()
	answers, sent := make([]response, racers), make([][]client.Signal, racers)
	errs := make([]error, racers)
	var ready, done sync.WaitGroup
	gate := make(chan struct{})
	for i := range racers {
		sent[i] = part(batch)
		ready.Add(1)
		done.Go(func() {
			ready.Done()
			<-gate
			answers[i], errs[i] = s.send(edges[i%len(edges)], sent[i], 10*time.Second)
		})
	}
	ready.Wait()
	close(gate)
	done.Wait()

	accepted := map[string]int{}
	took := make([]time.Duration, racers)
	for i, a := range answers {
		if errs[i] != nil || a.Status != 202 || len(a.Results) != len(sent[i]) {
			t.Errorf("racer %d: %+v %v", i, a, errs[i])
			continue
		}
		took[i] = a.Took
		for j, r := range a.Results {
			if r.SignalID != sent[i][j].ID || (r.Status != "accepted" && r.Status != "duplicate") {
				t.Errorf("racer %d: result %+v for %s", i, r, sent[i][j].ID)
			}
			if _, asked := accepted[r.SignalID]; !asked {
				accepted[r.SignalID] = 0
			}
			if r.Status == "accepted" {
				accepted[r.SignalID]++
			}
		}
	}
	for id, n := range accepted {
		if n != 1 {
			t.Errorf("signal %s: accepted %d times", id, n)
		}
	}
	if len(accepted) != len(batch) && !t.Failed() { // an id that no racer picked
		if a := s.must(edges[0], batch); a.count("accepted") != len(batch)-len(accepted) {
			text, err := json.Marshal(a.Results)
			t.Errorf("the rest: %s %v", text, err)
		}
	}
	return took
}
