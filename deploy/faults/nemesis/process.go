package nemesis

import (
	"context"
	"fmt"
	"syscall"
	"time"

	"storefront.internal/deploy/faults/topology"
)

// units are the processes that may be killed or stopped. The demo engine and the fake provider are not among the killed: what they
// hold is what the run is judged by.
func (n *Nemesis) units() []*topology.Unit {
	x := n.Topology
	all := []*topology.Unit{x.Edges[0].Unit, x.Edges[1].Unit, x.Relays[0].Unit, x.Relays[1].Unit, x.Control.Unit, x.Kafka, x.Postgres}
	if n.Redis {
		all = append(all, x.Redis)
	}
	return all
}

// N1: kill -9, and back after a while.
type kill struct{ unit *topology.Unit }

func (f kill) Inject(ctx context.Context) error { return f.unit.Kill(ctx) }
func (f kill) Heal(ctx context.Context) error   { return f.unit.Start(ctx) }

func (n *Nemesis) kill() (Case, bool) {
	u := pick(n, n.units()...)
	hold := n.between(0, 6*time.Second)
	if n.random.IntN(5) == 0 {
		hold = n.between(6*time.Second, 20*time.Second)
	}
	return Case{Fault: kill{u}, Detail: "kill -9 " + u.Name, Touches: []string{u.Name}, Hold: hold}, true
}

// N2: SIGSTOP, and SIGCONT: nothing is lost, everything is late.
type stall struct{ unit *topology.Unit }

func (f stall) Inject(context.Context) error { return f.unit.Pause() }
func (f stall) Heal(context.Context) error   { return f.unit.Continue() }

func (n *Nemesis) stall() (Case, bool) {
	x := n.Topology
	u := pick(n, append(n.units(), x.Engine.Unit, x.Provider.Unit)...)
	hold := n.between(time.Second, 12*time.Second)
	if n.random.IntN(6) == 0 {
		hold = n.between(15*time.Second, 45*time.Second)
	}
	return Case{Fault: stall{u}, Detail: "SIGSTOP " + u.Name, Touches: []string{u.Name}, Hold: hold}, true
}

// N11: relays come and go, so that partitions move all the time. Half of them leave in order, half are killed.
type storm struct {
	relays []*topology.Service
	every  time.Duration
	rough  bool
	cancel context.CancelFunc
	done   chan struct{}
}

func (f *storm) Inject(ctx context.Context) error {
	ctx, f.cancel = context.WithCancel(ctx)
	f.done = make(chan struct{})
	go func() {
		defer close(f.done)
		for i := 0; topology.Sleep(ctx, f.every) == nil; i++ {
			relay := f.relays[i%len(f.relays)].Unit
			sig := syscall.SIGTERM
			if f.rough {
				sig = syscall.SIGKILL
			}
			if relay.Stop(ctx, sig) == nil {
				_ = relay.Start(ctx)
			}
		}
	}()
	return nil
}

func (f *storm) Heal(ctx context.Context) error {
	if f.cancel != nil {
		f.cancel()
		<-f.done
	}
	for _, r := range f.relays {
		if err := r.Start(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (n *Nemesis) storm() (Case, bool) {
	x := n.Topology
	f := &storm{relays: x.Relays, every: n.between(3*time.Second, 8*time.Second), rough: n.random.IntN(2) == 0}
	way := "in order"
	if f.rough {
		way = "killed"
	}
	return Case{Fault: f, Detail: fmt.Sprintf("a relay leaves %s every %s", way, f.every.Round(100*time.Millisecond)),
		Touches: []string{x.Relays[0].Name, x.Relays[1].Name}, Hold: n.between(8*time.Second, 25*time.Second)}, true
}

// N13: an edge whose clock is wrong, from a restart to the next.
type clock struct {
	edge   *topology.Service
	bin    string
	offset time.Duration
}

func (f clock) Inject(ctx context.Context) error {
	f.edge.Alter(f.bin, "CHAOS_CLOCK_OFFSET="+f.offset.String())
	return f.again(ctx)
}

func (f clock) Heal(ctx context.Context) error {
	f.edge.Alter("")
	return f.again(ctx)
}

func (f clock) again(ctx context.Context) error {
	if err := f.edge.Stop(ctx, syscall.SIGTERM); err != nil {
		return err
	}
	return f.edge.Start(ctx)
}

func (n *Nemesis) clock() (Case, bool) {
	if n.ChaosBin == "" {
		return Case{}, false
	}
	edge := pick(n, n.Topology.Edges...)
	offset := n.between(time.Minute, 61*time.Minute).Round(time.Second)
	if n.random.IntN(2) == 0 {
		offset = -offset
	}
	return Case{Fault: clock{edge, n.ChaosBin, offset}, Detail: fmt.Sprintf("the clock of %s is %s off", edge.Name, offset),
		Touches: []string{edge.Name}, Hold: n.between(5*time.Second, 15*time.Second)}, true
}
