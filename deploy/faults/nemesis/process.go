package nemesis

import (
	"context"
	"errors"
	"fmt"
	"time"

	"storefront.internal/deploy/stack"
	"storefront.internal/shared/backoff"
)

// processes returns the processes that may be killed or paused. The demo engine and the fake provider are not
// killed: the checker needs their data.
func (n *Nemesis) processes() []*stack.Process {
	x := n.Topology
	all := append([]*stack.Process{x.Edges[0], x.Edges[1], x.Relays[0], x.Relays[1], x.Control, x.Postgres},
		x.Brokers...)
	if n.Redis {
		all = append(all, x.Redis)
	}
	return all
}

// N1: kill a process and start it again.
func (n *Nemesis) kill() (Operation, bool) {
	p := pick(n, n.processes()...)
	d := n.randomDuration(0, 6*time.Second)
	if n.random.IntN(5) == 0 {
		d = n.randomDuration(6*time.Second, 20*time.Second)
	}
	return Operation{Fault: fault{p.Kill, p.Start}, Detail: "kill -9 " + p.Name, Targets: []string{p.Name},
		Duration: d}, true
}

// N2: pause a process.
func (n *Nemesis) pause() (Operation, bool) {
	p := pick(n, append(n.processes(), n.Topology.Engine, n.Topology.Provider)...)
	d := n.randomDuration(time.Second, 12*time.Second)
	if n.random.IntN(6) == 0 {
		d = n.randomDuration(15*time.Second, 45*time.Second)
	}
	f := fault{func(context.Context) error { return p.Pause() },
		func(context.Context) error { return p.Resume() }}
	return Operation{Fault: f, Detail: "SIGSTOP " + p.Name, Targets: []string{p.Name}, Duration: d}, true
}

// N11: stop and start the relays in turn, so that their partitions move again and again.
func (n *Nemesis) rebalance() (Operation, bool) {
	relays, every, kill := n.Topology.Relays, n.randomDuration(3*time.Second,
		8*time.Second), n.random.IntN(2) == 0
	how := "stopped"
	if kill {
		how = "killed"
	}
	loop := background{run: func(ctx context.Context) {
		for i := 0; backoff.Sleep(ctx, every) == nil; i++ {
			relay := relays[i%len(relays)]
			stop := relay.Stop
			if kill {
				stop = relay.Kill
			}
			if stop(ctx) == nil {
				_ = relay.Start(ctx) // Heal starts it otherwise
			}
		}
	}}
	f := fault{loop.Inject, func(ctx context.Context) error {
		return errors.Join(loop.Heal(ctx), relays[0].Start(ctx), relays[1].Start(ctx))
	}}
	return Operation{Fault: f, Detail: fmt.Sprintf("a relay is %s every %s", how,
		every.Round(100*time.Millisecond)),
		Targets: []string{relays[0].Name, relays[1].Name}, Duration: n.randomDuration(8*time.Second,
			25*time.Second)}, true
}

// N13: restart an edge with a wrong clock, and again with the right one.
func (n *Nemesis) wrongClock() (Operation, bool) {
	if n.ChaosBin == "" {
		return Operation{}, false
	}
	edge := pick(n, n.Topology.Edges...)
	offset := n.randomDuration(time.Minute, 61*time.Minute).Round(time.Second)
	if n.random.IntN(2) == 0 {
		offset = -offset
	}
	restart := func(bin string, env ...string) func(context.Context) error {
		return func(ctx context.Context) error {
			edge.SetBinaries(bin)
			edge.SetEnv(env...)
			if err := edge.Stop(ctx); err != nil {
				return err
			}
			return edge.Start(ctx)
		}
	}
	return Operation{Fault: fault{restart(n.ChaosBin, "CHAOS_CLOCK_OFFSET="+offset.String()), restart("")},
		Detail:  fmt.Sprintf("the clock of %s is %s off", edge.Name, offset),
		Targets: []string{edge.Name}, Duration: n.randomDuration(5*time.Second, 15*time.Second)}, true
}
