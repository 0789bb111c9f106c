package systemtest

import (
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"storefront.internal/deploy/load"
	"storefront.internal/deploy/stack/client"
)

// traffic makes random signals of a few Decisions, valid and invalid ones. Every cart signal of a run has an
// instant of its own, so that the order in which the shopper acted is known whatever order the signals arrive
// in.
type traffic struct {
	mu        sync.Mutex
	random    *rand.Rand
	decisions []client.Decision
	instants  []time.Time // shuffled; taken from the end
	made      map[string]client.Signal
}

// newTraffic spreads n instants over the last 25 minutes, and one in twenty over the days before: late
// signals are looked up in the ledger, which must know the resent ones.
func newTraffic(seed uint64, decisions []client.Decision, n int) *traffic {
	g := &traffic{random: rand.New(rand.NewPCG(seed, seed)), decisions: decisions,
		made: map[string]client.Signal{}}
	now := time.Now().Truncate(time.Microsecond)
	step := 25 * time.Minute / time.Duration(n)
	for i := range n {
		at := now.Add(-time.Duration(i) * step)
		if g.random.IntN(20) == 0 {
			at = at.Add(-72 * time.Hour)
		}
		g.instants = append(g.instants, at)
	}
	g.random.Shuffle(n, func(i, j int) { g.instants[i], g.instants[j] = g.instants[j], g.instants[i] })
	return g
}

// batch is up to 50 new signals; one in twenty is invalid and comes with its expected reason. It is empty at
// the end of the run.
func (g *traffic) batch() (batch []client.Signal, reasons []string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := min(1+g.random.IntN(50), len(g.instants))
	for range n {
		s, reason := g.valid(), ""
		if g.random.IntN(20) == 0 {
			reason = g.invalidate(&s)
		} else {
			g.made[s.ID] = s
		}
		batch, reasons = append(batch, s), append(reasons, reason)
	}
	return batch, reasons
}

func (g *traffic) valid() client.Signal {
	at := g.instants[len(g.instants)-1]
	g.instants = g.instants[:len(g.instants)-1]
	d := g.decisions[g.random.IntN(len(g.decisions))]
	s := load.ValidSignal(g.random, d, at)
	switch {
	case s.Type == "add_to_cart" && g.random.IntN(3) == 0:
		s.Quantity = new(1 + g.random.IntN(400_000)) // so that lines reach the greatest quantity
	case s.Type == "impression" && g.random.IntN(2) == 0:
		s.VariantID = d.Items[0].VariantID
	}
	if g.random.IntN(3) == 0 {
		s.Visitor = client.Visitor{VisitorID: "vis_" + randomHex(4) + "x", SessionID: "ses_" + randomHex(4) +
			"x"}
	}
	return s
}

// invalidate makes a signal violate one rule and returns the expected reason.
func (g *traffic) invalidate(s *client.Signal) (reason string) {
	if g.random.IntN(5) == 0 {
		s.DecisionID = s.DecisionID[:len(s.DecisionID)-3] + strings.Repeat("_", 3)
		return "unknown_decision"
	}
	return load.Violate(g.random, s)
}
