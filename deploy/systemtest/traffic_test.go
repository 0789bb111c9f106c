package systemtest

import (
	"math/rand/v2"
	"strings"
	"sync"
	"time"
)

// traffic makes random sound signals of a few Decisions, and broken ones. Every cart signal of a run has an instant of its own,
// so that the order in which the shopper acted is known whatever order the signals arrive in.
type traffic struct {
	mu        sync.Mutex
	random    *rand.Rand
	decisions []decision
	instants  []time.Time // shuffled; taken from the end
	made      map[string]signal
}

// newTraffic spreads n instants over the last 25 minutes, and one in twenty over the days before: late signals are looked up in
// the ledger, and resent ones must be known there.
func newTraffic(seed uint64, decisions []decision, n int) *traffic {
	g := &traffic{random: rand.New(rand.NewPCG(seed, seed)), decisions: decisions, made: map[string]signal{}}
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

// batch is up to 50 new signals; one in twenty is broken and comes with the reason that it must get. It is empty when the run
// has made all of its signals.
func (g *traffic) batch() (batch []signal, reasons []string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := min(1+g.random.IntN(50), len(g.instants))
	for range n {
		s, reason := g.sound(), ""
		if g.random.IntN(20) == 0 {
			reason = g.spoil(&s)
		} else {
			g.made[s.ID] = s
		}
		batch, reasons = append(batch, s), append(reasons, reason)
	}
	return batch, reasons
}

func (g *traffic) sound() signal {
	at := g.instants[len(g.instants)-1]
	g.instants = g.instants[:len(g.instants)-1]
	d := g.decisions[g.random.IntN(len(g.decisions))]
	item := d.Items[g.random.IntN(min(3, len(d.Items)))]
	s := signal{ID: "sig_" + randomHex(16), OccurredAt: stamp(at), DecisionID: d.ID, ItemID: item.ItemID}
	if g.random.IntN(2) == 0 {
		s.VariantID = item.VariantID
	}
	if g.random.IntN(3) == 0 {
		s.Visitor = visitor{"vis_" + randomHex(4) + "x", "ses_" + randomHex(4) + "x"}
	}
	switch g.random.IntN(10) {
	case 0:
		s.Type, s.ItemID = "impression", ""
	case 1:
		s.Type, s.Position = "click", new(g.random.IntN(20))
	case 2:
		s.Type, s.Quantity = "purchase", new(1+g.random.IntN(5))
	case 3:
		s.Type = "dismiss"
	case 4:
		s.Type = "remove_from_cart"
	case 5, 6:
		s.Type, s.Quantity = "update_quantity", new(g.random.IntN(6))
	case 7:
		s.Type, s.Quantity = "add_to_cart", new(1+g.random.IntN(400_000))
	default:
		s.Type = "add_to_cart"
	}
	return s
}

// spoil breaks one rule and answers the reason.
func (g *traffic) spoil(s *signal) (reason string) {
	switch g.random.IntN(5) {
	case 0:
		s.OccurredAt = "yesterday"
		return "invalid_occurred_at"
	case 1:
		s.Type = "look"
		return "invalid_type"
	case 2:
		s.DecisionID = s.DecisionID[:len(s.DecisionID)-3] + strings.Repeat("_", 3)
		return "unknown_decision"
	case 3:
		s.DecisionID = ""
		return "missing_decision_id"
	default:
		s.Type, s.ItemID, s.Quantity = "impression", "", new(2)
		return "unexpected_quantity"
	}
}
