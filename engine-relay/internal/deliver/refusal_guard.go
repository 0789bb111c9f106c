package deliver

import (
	"slices"
	"sync"

	"storefront.internal/shared/ident"
)

const (
	// creditLimit is how many deliveries can be dead-lettered after the engine accepted the last one.
	creditLimit = 10
	// massRefusalConnections is how many connections must be affected before the engine is at fault.
	massRefusalConnections = 3
)

// refusalGuard tells a delivery at fault from an engine at fault when the engine refuses a delivery that is
// sent alone. The credit goes up by one for each delivery that the engine accepts and down by one for each
// that it refuses, between 0 and creditLimit (a cumulative sum with two barriers, in constant memory). A
// refused delivery is dead-lettered while there is credit. Without credit the engine refuses at least as much
// as it accepts, and the delivery is spared: it waits in the retry lane and is sent again.
//
// Spared deliveries of several connections, with nothing accepted in between, are a mass refusal. It ends
// when the credit is full. Until then nothing is dead-lettered.
//
// A new guard has no credit, so restarts during a mass refusal cost no deliveries.
type refusalGuard struct {
	mu          sync.Mutex
	credit      int
	connections []ident.ConnectionID // of deliveries spared since the engine last accepted one
	massRefusal bool
}

// accept records deliveries that the engine accepted. ended reports the end of a mass refusal.
func (g *refusalGuard) accept(n int) (ended bool) {
	if n == 0 {
		return false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.connections = g.connections[:0]
	g.credit = min(g.credit+n, creditLimit)
	ended = g.massRefusal && g.credit == creditLimit
	if ended {
		g.massRefusal = false
	}
	return ended
}

// refuse records a delivery that the engine refused when it was sent alone. The class is malformed when it
// is dead-lettered, else spared or massRefused. began reports the begin of a mass refusal.
func (g *refusalGuard) refuse(c ident.ConnectionID) (class replyClass, began bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	hadCredit := g.credit > 0
	g.credit = max(g.credit-1, 0)
	switch {
	case g.massRefusal:
		return massRefused, false
	case hadCredit:
		return malformed, false
	}
	if !slices.Contains(g.connections, c) {
		g.connections = append(g.connections, c)
	}
	if len(g.connections) < massRefusalConnections {
		return spared, false
	}
	g.connections, g.massRefusal = g.connections[:0], true
	return massRefused, true
}

// active reports whether there is a mass refusal.
func (g *refusalGuard) active() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.massRefusal
}
