// Package liveness says what must go on while exactly one dependency is down: which share of the goodput of
// before, and from when on. The nemesis injects the cases, and the checker measures them.
package liveness

import (
	"slices"
	"time"

	"storefront.internal/deploy/faults/history"
)

// Case is one dependency that is down in one way.
type Case struct {
	Dependency Dependency
	How        How
	Property   string // L1 … L6, L9
	Length     time.Duration
	Expect     []Expectation
}

// Name identifies the case in a history.
func (c Case) Name() string { return string(c.Dependency) + " " + string(c.How) }

// Dependency is a process that others call, or one that callers can do without.
type Dependency string

// The dependencies.
const (
	Postgres Dependency = "postgres"
	Redis    Dependency = "redis"
	Broker   Dependency = "broker" // one of several
	Kafka    Dependency = "kafka"  // the only broker
	Engine   Dependency = "engine"
	Provider Dependency = "provider"
	Relay    Dependency = "relay" // all relays
	Control  Dependency = "control"
	Edge     Dependency = "edge" // one of two
	Clients  Dependency = "clients"
)

// How is the way in which a dependency is down.
type How string

// The ways in which a dependency is down: it is killed, it is stopped by a signal, or the links to it swallow
// all bytes and keep their connections.
const (
	Killed     How = "killed"
	Hung       How = "hung"
	BlackHoled How = "black-holed"
	Failing    How = "failing" // it answers 503
	Greedy     How = "greedy"  // clients connect, announce bodies and leave
)

// Expectation is about the steady calls of one operation that begin in a part of the fault.
type Expectation struct {
	Op    history.Op
	From  time.Duration // after the begin of the fault
	Until time.Duration // 0: the end of the fault
	// Floor is the least share of the goodput of before: of calls that are answered in time with what the
	// client asked for.
	Floor float64
	// Answered counts every answer in time, also that the operation is unavailable.
	Answered bool
	// Warm limits the expectation to a Redis that remembers its claims, and Cold to one that does not.
	Warm, Cold bool
}

const (
	// Timely is the time within which an answer counts.
	Timely = 1500 * time.Millisecond
	// Before is the time before a fault whose goodput is the measure.
	Before = 5 * time.Second
	// RecoveryLimit is the time after the end of a fault within which every edge accepts a signal that the
	// engine gets, and the goodput is that of before.
	RecoveryLimit = 45 * time.Second

	known      = 3 * time.Second // from then on it is known that a dependency is down
	usual      = 12 * time.Second
	usualFloor = 0.8
)

// goesOn expects operations to go on.
func goesOn(ops ...history.Op) []Expectation {
	var all []Expectation
	for _, op := range ops {
		all = append(all, Expectation{Op: op, From: known, Floor: usualFloor})
	}
	return all
}

// isAnswered expects operations to answer in time that they are unavailable.
func isAnswered(ops ...history.Op) []Expectation {
	all := goesOn(ops...)
	for i := range all {
		all[i].Answered = true
	}
	return all
}

// Cases returns all cases for a number of brokers.
func Cases(brokers int) []Case {
	public := []history.Op{history.Signals, history.Item, history.Recommend}
	var all []Case
	add := func(property string, d Dependency, length time.Duration, expect []Expectation, ways ...How) {
		for _, how := range ways {
			all = append(all, Case{d, how, property, length, expect})
		}
	}
	recording := []Expectation{
		{Op: history.Signals, From: known, Floor: usualFloor, Warm: true},
		{Op: history.Signals, From: known, Floor: usualFloor, Cold: true, Answered: true},
	}
	add("L1", Postgres, usual, slices.Concat(recording, goesOn(history.Item, history.Recommend)),
		Hung, BlackHoled, Killed)
	add("L2", Redis, usual, slices.Concat(goesOn(history.Item, history.Recommend, history.Observe),
		isAnswered(history.Signals)), Hung, BlackHoled, Killed)
	if brokers > 1 {
		reads := goesOn(history.Item, history.Recommend)
		add("L3", Broker, 22*time.Second, append([]Expectation{
			{Op: history.Signals, From: known, Until: 13 * time.Second, Floor: 0.6},
			{Op: history.Signals, From: 15 * time.Second, Floor: 0.9},
		}, reads...), BlackHoled)
		// The leaders acknowledge nothing until the controller has fenced a broker that is gone, which takes
		// nine seconds. When that broker was the controller, the others elect a new one first, and its nine
		// seconds begin anew: Kafka then acknowledges again after 16 s.
		add("L3", Broker, 26*time.Second, append([]Expectation{
			{Op: history.Signals, From: 18 * time.Second, Floor: 0.9}}, reads...), Killed)
		add("L3", Broker, 34*time.Second, append([]Expectation{
			{Op: history.Signals, From: 26 * time.Second, Floor: 0.9}}, reads...), Hung)
	} else {
		add("L3", Kafka, usual, goesOn(history.Item), BlackHoled, Hung, Killed)
	}
	add("L4", Engine, usual, goesOn(append(public, history.Observe)...), Hung, BlackHoled, Failing)
	add("L5", Provider, usual, goesOn(append(public, history.Observe, history.Webhook)...), Hung, BlackHoled)
	add("L6", Relay, usual, goesOn(append(public, history.Observe)...), Hung, Killed)
	add("L6", Control, usual, goesOn(public...), Hung, Killed)
	add("L6", Edge, usual, goesOn(append(public, history.Observe)...), Hung, Killed)
	add("L9", Clients, usual, goesOn(append(public, history.Observe)...), Greedy)
	return all
}

// Find returns the case with a name.
func Find(name string) (Case, bool) {
	for _, brokers := range []int{1, 3} {
		for _, c := range Cases(brokers) {
			if c.Name() == name {
				return c, true
			}
		}
	}
	return Case{}, false
}
