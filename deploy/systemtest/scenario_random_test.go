package systemtest

import (
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"storefront.internal/deploy/stack"
	"storefront.internal/deploy/stack/client"
)

// tally is what the clients were answered.
type tally struct {
	mu       sync.Mutex
	accepted map[string]int
	sent     int
}

// 16 clients send random signals over two edges to two relays: 30 % of the batches again, 5 % of the signals
// invalid, late ones included. The engine gets what was accepted, and its carts equal those of an independent
// fold.
func TestRandomSignals(t *testing.T) {
	x := newDeployment(t)
	edges := []*stack.Process{x.edge(), x.edge()}
	x.relay()
	x.relay()
	s := x.newStorefront()
	var decisions []client.Decision
	for i := range 40 {
		decisions = append(decisions, s.recommend(edges[i%2]))
	}
	total := soak(20_000, 200_000)
	seed := rand.Uint64()
	t.Logf("%d signals, seed %d", total, seed)
	g := newTraffic(seed, decisions, total)
	told := &tally{accepted: map[string]int{}}
	begun := time.Now()
	var clients sync.WaitGroup
	for i := range 16 {
		clients.Go(func() { told.client(t, s, edges, g, rand.New(rand.NewPCG(seed, uint64(i)))) })
	}
	clients.Wait()
	t.Logf("%d signals sent in %s", told.sent, time.Since(begun))
	if t.Failed() {
		return
	}
	told.check(t, g)
	ids := make([]string, 0, len(g.made))
	for id := range g.made {
		ids = append(ids, id)
	}
	v := x.awaitDelivered(t, s, ids, 5*time.Minute)
	t.Logf("delivered after %s", time.Since(begun))
	x.awaitDrained(t, s)
	sameCarts(t, v, cartLines(g.made))
}

// client sends batches until there are no more; some of them again at once, some later and mixed with new
// ones.
func (c *tally) client(t *testing.T, s *storefront, edges []*stack.Process, g *traffic, random *rand.Rand) {
	var kept [][]client.Signal
	for {
		batch, reasons := g.batch()
		if len(batch) == 0 {
			return
		}
		c.send(t, s, edges[random.IntN(2)], batch, reasons)
		if len(kept) < 20 {
			kept = append(kept, batch)
		}
		if random.IntN(10) < 3 { // 30 % resends, shuffled
			again := slices.Clone(kept[random.IntN(len(kept))])
			random.Shuffle(len(again), func(i, j int) { again[i], again[j] = again[j], again[i] })
			c.send(t, s, edges[random.IntN(2)], again, nil)
		}
		if t.Failed() {
			return
		}
	}
}

// send sends a batch until it is answered by a 202, and checks the results; the reasons are known for a first
// attempt.
func (c *tally) send(t *testing.T, s *storefront, edge *stack.Process, batch []client.Signal,
	reasons []string) {
	var a response
	var err error
	for attempt := range 10 {
		if a, err = s.send(edge, batch, 20*time.Second); err == nil && a.Status == 202 {
			break
		}
		t.Logf("attempt %d: %d %s %v", attempt, a.Status, a.Code, err)
	}
	if err != nil || len(a.Results) != len(batch) {
		t.Errorf("a batch was never taken: %+v %v", a, err)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sent += len(batch)
	for i, r := range a.Results {
		if r.Index != i || r.SignalID != batch[i].ID {
			t.Errorf("result %d: %+v", i, r)
		}
		if reasons != nil && r.Reason != reasons[i] {
			t.Errorf("signal %+v: %+v, want reason %q", batch[i], r, reasons[i])
		}
		if r.Status == "accepted" {
			c.accepted[r.SignalID]++
		}
	}
}

// check compares what was accepted with what was valid.
func (c *tally) check(t *testing.T, g *traffic) {
	t.Helper()
	for id, n := range c.accepted {
		if _, sound := g.made[id]; !sound || n != 1 {
			t.Errorf("signal %s: sound %v, accepted %d times", id, sound, n)
		}
	}
	if len(c.accepted) != len(g.made) {
		t.Errorf("%d signals accepted, %d are sound", len(c.accepted), len(g.made))
	}
}

func sameCarts(t *testing.T, v view, want map[lineKey]int) {
	t.Helper()
	if len(v.lines) != len(want) {
		t.Errorf("the engine has %d cart lines, want %d", len(v.lines), len(want))
	}
	wrong := 0
	for key, quantity := range want {
		if got := v.lines[key]; got.Quantity != quantity {
			if wrong++; wrong <= 5 {
				t.Errorf("line %v: %d at revision %d, want %d", key, got.Quantity, got.Revision, quantity)
			}
		}
	}
	if wrong > 0 {
		t.Errorf("%d of %d cart lines are wrong", wrong, len(want))
	}
}
