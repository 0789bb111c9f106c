// Package nemesis injects faults into a deployment and heals them. The seed determines the schedule. It does
// not look at what the services do.
package nemesis

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"storefront.internal/deploy/faults/history"
	"storefront.internal/deploy/faults/liveness"
	"storefront.internal/deploy/faults/load"
	"storefront.internal/deploy/faults/topology"
	"storefront.internal/shared/backoff"
)

// Fault is a disturbance. Heal is called after each Inject, also after one that failed.
type Fault interface {
	Inject(ctx context.Context) error
	Heal(ctx context.Context) error
}

// fault is a Fault of two functions; nil functions do nothing.
type fault struct{ inject, heal func(context.Context) error }

func (f fault) Inject(ctx context.Context) error { return f.inject(ctx) }

func (f fault) Heal(ctx context.Context) error {
	if f.heal == nil {
		return nil
	}
	return f.heal(ctx)
}

// background is a Fault that runs until it is healed.
type background struct {
	run    func(ctx context.Context)
	cancel context.CancelFunc
	done   chan struct{}
}

func (f *background) Inject(ctx context.Context) error {
	ctx, f.cancel = context.WithCancel(ctx)
	f.done = make(chan struct{})
	go func() {
		defer close(f.done)
		f.run(ctx)
	}()
	return nil
}

func (f *background) Heal(context.Context) error {
	if f.cancel != nil {
		f.cancel()
		<-f.done
	}
	return nil
}

// Operation is a fault in the schedule.
type Operation struct {
	Fault
	Kind     string // name of a Kind
	Detail   string
	Targets  []string // other faults must not have these targets at the same time
	Duration time.Duration
}

// Config of a nemesis.
type Config struct {
	Topology *topology.Topology
	Recorder *history.Recorder
	Seed     uint64
	Kinds    []string // names of the kinds to inject
	// Redis allows faults that make Redis unreachable or lose its data.
	Redis bool
	// Short makes all faults short.
	Short bool
	// ChaosBin is the folder of binaries whose clock can be set. Without it there are no faults of the clock.
	ChaosBin string
	// Target returns a connection that abusive clients may attack.
	Target func(*rand.Rand) load.Target
	Logf   func(format string, args ...any)
}

// Nemesis schedules and injects faults.
type Nemesis struct {
	Config
	random  *rand.Rand
	queue   []string
	deck    []liveness.Case
	singles int // cases that were drawn

	mu     sync.Mutex
	counts map[string]int
	failed []string
}

// New makes a nemesis.
func New(cfg Config) *Nemesis {
	random := rand.New(rand.NewPCG(cfg.Seed, 0x6e656d)) // not secret
	return &Nemesis{Config: cfg, random: random, counts: map[string]int{}}
}

// Kind is a kind of fault.
type Kind struct{ Name, Description string }

// Kinds returns all kinds of faults.
func Kinds() []Kind {
	return []Kind{
		{"N1", "kill -9 of an edge, a relay, control, the broker, PostgreSQL or Redis"},
		{"N2", "SIGSTOP of any process for up to 45 s"},
		{"N3", "connections with latency, little bandwidth or small packets"},
		{"N4", "network partitions: no data passes, or connections are refused"},
		{"N5", "connections that are reset or closed within a message"},
		{"N6", "lost responses: the request arrives, the response does not"},
		{"N7", "full disk of PostgreSQL or Kafka"},
		{"N8", "Redis flushed, out of memory, paused or replaced by an empty one"},
		{"N9", "PostgreSQL restarted, sessions terminated, tables locked, rows rejected"},
		{"N10", "Kafka restarted, its topic configured, unreadable records, consumer offsets set back"},
		{"N11", "consumer group rebalances: relays leave and come back"},
		{"N12", "the engine rejects requests, hangs, or answers invalid or incomplete responses"},
		{"N13", "an edge whose clock is wrong by up to an hour"},
		{"N14", "the provider throttles, fails, hangs or answers invalid responses"},
		{"N15", "abusive clients: slow requests, request smuggling, forged keys"},
		{SingleKind, "one dependency is killed, hangs or swallows everything, and nothing else is disturbed"},
	}
}

// Counts returns the number of injected faults by kind.
func (n *Nemesis) Counts() map[string]int {
	n.mu.Lock()
	defer n.mu.Unlock()
	out := map[string]int{}
	for k, c := range n.counts {
		out[k] = c
	}
	return out
}

// Failed describes the faults that could not be injected or healed as planned.
func (n *Nemesis) Failed() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.failed)
}

// Episode injects one to four overlapping faults and returns when all are healed.
func (n *Nemesis) Episode(ctx context.Context) {
	var active []Operation
	var all sync.WaitGroup
	size := []int{1, 2, 2, 3, 3, 4}[n.random.IntN(6)]
	for range size {
		c, ok := n.next(active)
		if !ok {
			continue
		}
		active = append(active, c)
		all.Go(func() { n.run(ctx, c) })
		if size > 1 && backoff.Sleep(ctx, n.randomDuration(0, 3*time.Second)) != nil {
			break
		}
	}
	all.Wait()
}

// next builds an operation of the next kind in a shuffled queue, so that all kinds are equally frequent. Its
// targets are not those of active operations.
func (n *Nemesis) next(active []Operation) (Operation, bool) {
	for range 20 {
		if len(n.queue) == 0 {
			n.queue = slices.Clone(n.Kinds)
			n.random.Shuffle(len(n.queue), func(i, j int) { n.queue[i], n.queue[j] = n.queue[j], n.queue[i] })
		}
		if len(n.queue) == 0 {
			return Operation{}, false
		}
		kind := n.queue[0]
		c, ok := n.build(kind)
		if !ok {
			n.queue = n.queue[1:]
			continue
		}
		if n.conflicts(c, active) {
			continue
		}
		n.queue = n.queue[1:]
		if n.Short {
			c.Duration = min(c.Duration, time.Second+c.Duration/8)
		}
		return c, true
	}
	return Operation{}, false
}

func (n *Nemesis) conflicts(c Operation, active []Operation) bool {
	for _, p := range active {
		for _, t := range c.Targets {
			if slices.Contains(p.Targets, t) {
				return true
			}
		}
	}
	return false
}

// build makes a random operation of a kind. Not all kinds are possible on each machine.
func (n *Nemesis) build(kind string) (Operation, bool) {
	makers := map[string]func() (Operation, bool){
		"N1": n.kill, "N2": n.pause, "N3": n.slow, "N4": n.partition, "N5": n.reset, "N6": n.loseAck,
		"N7": n.fillDisk, "N8": n.redis,
		"N9": n.postgres, "N10": n.kafka, "N11": n.rebalance, "N12": n.engine, "N13": n.wrongClock,
		"N14": n.provider, "N15": n.abuse,
	}
	do, ok := makers[kind]
	if !ok {
		return Operation{}, false
	}
	c, ok := do()
	c.Kind = kind
	return c, ok
}

// run injects, heals and records a fault. The end of the run shortens the fault.
func (n *Nemesis) run(ctx context.Context, c Operation) {
	at := n.Recorder.Now()
	n.Logf("%-3s %s, for %s", c.Kind, c.Detail, c.Duration.Round(100*time.Millisecond))
	n.inject(ctx, c, c.Kind+" "+c.Detail)
	_ = backoff.Sleep(ctx, c.Duration)
	n.heal(ctx, c, c.Kind+" "+c.Detail)
	n.count(c.Kind)
	n.Recorder.RecordFault(history.Fault{At: at, Until: n.Recorder.Now(), Kind: c.Kind, Detail: c.Detail})
}

func (n *Nemesis) inject(ctx context.Context, f Fault, name string) {
	if err := f.Inject(ctx); err != nil {
		n.fail(name, "inject", err)
	}
}

// heal ends a fault, also after the end of the run.
func (n *Nemesis) heal(ctx context.Context, f Fault, name string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 3*time.Minute)
	defer cancel()
	if err := f.Heal(ctx); err != nil {
		n.fail(name, "heal", err)
	}
}

func (n *Nemesis) count(kind string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.counts[kind]++
}

func (n *Nemesis) fail(name, what string, err error) {
	text := fmt.Sprintf("%s: %s: %v", name, what, err)
	n.Logf("%s", text)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.failed = append(n.failed, text)
}

func (n *Nemesis) randomDuration(low, high time.Duration) time.Duration {
	return low + time.Duration(n.random.Int64N(int64(high-low)+1))
}

func pick[T any](n *Nemesis, all ...T) T { return all[n.random.IntN(len(all))] }

// retry calls do until it succeeds: other faults may prevent it for a while.
func retry(ctx context.Context, do func(context.Context) error) error {
	for {
		attempt, cancel := context.WithTimeout(ctx, 20*time.Second)
		err := do(attempt)
		cancel()
		if err == nil {
			return nil
		}
		if e := backoff.Sleep(ctx, 300*time.Millisecond); e != nil {
			return fmt.Errorf("%w (last: %w)", e, err)
		}
	}
}
