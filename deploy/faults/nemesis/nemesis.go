// Package nemesis injects faults into a topology and heals them: the kinds N1 to N15, each a small type. It owns the seeded
// schedule and what the history says of a fault; it never looks at what the services make of it.
package nemesis

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"storefront.internal/deploy/faults/history"
	"storefront.internal/deploy/faults/topology"
)

// Fault is one disturbance. Heal is called after every Inject, also after one that failed half-way, and may be called when there is
// nothing to heal.
type Fault interface {
	Inject(ctx context.Context) error
	Heal(ctx context.Context) error
}

// Case is a fault with what the schedule must know of it.
type Case struct {
	Fault
	Kind    string // N1 … N15
	Detail  string
	Touches []string // what no other fault may touch meanwhile
	Hold    time.Duration
}

// Config of a nemesis.
type Config struct {
	Topology *topology.Topology
	Recorder *history.Recorder
	Seed     uint64
	Kinds    []string // those that may be injected
	// Redis allows faults that make Redis unreachable or forgetful.
	Redis bool
	// Hasty keeps every fault short.
	Hasty bool
	// ChaosBin holds binaries with a clock that can be set wrong; without it there is no N13.
	ChaosBin string
	// Victim is a connection that rude clients may pester.
	Victim func(*rand.Rand) Victim
	Say    func(format string, args ...any)
}

// Nemesis draws faults and plays them.
type Nemesis struct {
	Config
	random *rand.Rand
	deck   []string

	mu     sync.Mutex
	counts map[string]int
	failed []string
}

// New makes a nemesis.
func New(cfg Config) *Nemesis {
	return &Nemesis{Config: cfg, random: rand.New(rand.NewPCG(cfg.Seed, 0x6e656d)), counts: map[string]int{}} //nolint:gosec // a schedule
}

// Kinds lists every kind.
func Kinds() []string {
	var all []string
	for i := range 15 {
		all = append(all, fmt.Sprintf("N%d", i+1))
	}
	return all
}

// Counts tells how many faults of each kind were injected.
func (n *Nemesis) Counts() map[string]int {
	n.mu.Lock()
	defer n.mu.Unlock()
	out := map[string]int{}
	for k, c := range n.counts {
		out[k] = c
	}
	return out
}

// Failed are faults that could not be injected or healed as they should, in words.
func (n *Nemesis) Failed() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.failed)
}

// Episode injects one to four faults that overlap, and returns when all are healed.
func (n *Nemesis) Episode(ctx context.Context) {
	var playing []Case
	var all sync.WaitGroup
	size := []int{1, 2, 2, 3, 3, 4}[n.random.IntN(6)]
	for range size {
		c, ok := n.draw(playing)
		if !ok {
			continue
		}
		playing = append(playing, c)
		all.Go(func() { n.play(ctx, c) })
		if size > 1 && topology.Sleep(ctx, n.between(0, 3*time.Second)) != nil {
			break
		}
	}
	all.Wait()
}

// draw takes the next kind from a shuffled deck, so that every kind comes up equally often, and makes a fault of it that touches
// nothing of what is played.
func (n *Nemesis) draw(playing []Case) (Case, bool) {
	for range 20 {
		if len(n.deck) == 0 {
			n.deck = slices.Clone(n.Kinds)
			n.random.Shuffle(len(n.deck), func(i, j int) { n.deck[i], n.deck[j] = n.deck[j], n.deck[i] })
		}
		if len(n.deck) == 0 {
			return Case{}, false
		}
		kind := n.deck[0]
		c, ok := n.make(kind)
		if !ok {
			n.deck = n.deck[1:]
			continue
		}
		if n.clashes(c, playing) {
			continue
		}
		n.deck = n.deck[1:]
		if n.Hasty {
			c.Hold = min(c.Hold, time.Second+c.Hold/8)
		}
		return c, true
	}
	return Case{}, false
}

func (n *Nemesis) clashes(c Case, playing []Case) bool {
	for _, p := range playing {
		for _, t := range c.Touches {
			if slices.Contains(p.Touches, t) {
				return true
			}
		}
	}
	return false
}

// make builds a fault of a kind from the seed; not every kind is possible everywhere.
func (n *Nemesis) make(kind string) (Case, bool) {
	makers := map[string]func() (Case, bool){
		"N1": n.kill, "N2": n.stall, "N3": n.slow, "N4": n.partition, "N5": n.reset, "N6": n.loseAck, "N7": n.fill, "N8": n.redis,
		"N9": n.postgres, "N10": n.kafka, "N11": n.storm, "N12": n.engine, "N13": n.clock, "N14": n.provider, "N15": n.rude,
	}
	do, ok := makers[kind]
	if !ok {
		return Case{}, false
	}
	c, ok := do()
	c.Kind = kind
	return c, ok
}

// play injects, holds, heals and records one fault. A fault that is cut short by the end of the run is healed all the same.
func (n *Nemesis) play(ctx context.Context, c Case) {
	at := n.Recorder.Now()
	n.Say("%-3s %s, for %s", c.Kind, c.Detail, c.Hold.Round(100*time.Millisecond))
	if err := c.Inject(ctx); err != nil {
		n.fails(c, "inject", err)
	}
	_ = topology.Sleep(ctx, c.Hold)
	calm := context.WithoutCancel(ctx)
	calm, cancel := context.WithTimeout(calm, 3*time.Minute)
	defer cancel()
	if err := c.Heal(calm); err != nil {
		n.fails(c, "heal", err)
	}
	n.mu.Lock()
	n.counts[c.Kind]++
	n.mu.Unlock()
	n.Recorder.Fault(history.Fault{At: at, Until: n.Recorder.Now(), Kind: c.Kind, Detail: c.Detail})
}

func (n *Nemesis) fails(c Case, what string, err error) {
	n.Say("%s %s: %s: %v", c.Kind, c.Detail, what, err)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.failed = append(n.failed, fmt.Sprintf("%s %s: %s: %v", c.Kind, c.Detail, what, err))
}

// between draws a duration.
func (n *Nemesis) between(low, high time.Duration) time.Duration {
	return low + time.Duration(n.random.Int64N(int64(high-low)+1))
}

func pick[T any](n *Nemesis, all ...T) T { return all[n.random.IntN(len(all))] }
