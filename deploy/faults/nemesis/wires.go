package nemesis

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"storefront.internal/deploy/faults/link"
)

// wires is a disturbance of some links, healed on each.
type wires struct {
	links []*link.Link
	do    func(*link.Link) error
}

func (f wires) Inject(context.Context) error { return f.each(f.do) }
func (f wires) Heal(context.Context) error   { return f.each((*link.Link).Heal) }

func (f wires) each(do func(*link.Link) error) error {
	var errs []error
	for _, l := range f.links {
		errs = append(errs, do(l))
	}
	return errors.Join(errs...)
}

// links picks a link, or all links of one process.
func (n *Nemesis) links(allOf bool) []*link.Link {
	var names []string
	for name := range n.Topology.Links {
		if strings.HasPrefix(name, "clients>relay") || strings.HasPrefix(name, "clients>engine") || strings.HasPrefix(name, "clients>provider") {
			continue // nobody calls there
		}
		if n.Redis || !strings.HasSuffix(name, ">redis") {
			names = append(names, name)
		}
	}
	slices.Sort(names) // a map has no order, and a seed must have one
	chosen := names[n.random.IntN(len(names))]
	if allOf {
		from, _, _ := strings.Cut(chosen, ">")
		if from == "clients" {
			from = "edge-1"
		}
		names = slices.DeleteFunc(names, func(name string) bool { return !strings.HasPrefix(name, from+">") })
	} else {
		names = []string{chosen}
	}
	var out []*link.Link
	for _, name := range names {
		out = append(out, n.Topology.Links[name])
	}
	return out
}

func (n *Nemesis) wires(what string, links []*link.Link, hold time.Duration, do func(*link.Link) error) (Case, bool) {
	var names []string
	for _, l := range links {
		names = append(names, l.Name)
	}
	return Case{Fault: wires{links, do}, Detail: what + " " + strings.Join(names, ", "), Touches: names, Hold: hold}, true
}

// N3: slow, narrow or sliced links.
func (n *Nemesis) slow() (Case, bool) {
	links, hold := n.links(n.random.IntN(4) == 0), n.between(3*time.Second, 15*time.Second)
	switch n.random.IntN(4) {
	case 0:
		return n.wires("10 KB/s on", links, hold, func(l *link.Link) error { return l.Narrow(10) })
	case 1:
		return n.wires("slices on", links, hold, func(l *link.Link) error { return l.Slice(64, 200*time.Microsecond) })
	default:
		latency := n.between(50*time.Millisecond, 2*time.Second)
		return n.wires(fmt.Sprintf("%s on", latency.Round(time.Millisecond)), links, hold, func(l *link.Link) error { return l.Slow(latency, latency/4) })
	}
}

// N4: a partition that heals: nothing passes and connections stay, or connections are closed and refused.
func (n *Nemesis) partition() (Case, bool) {
	links, hold := n.links(n.random.IntN(3) == 0), n.between(2*time.Second, 15*time.Second)
	if n.random.IntN(2) == 0 {
		return n.wires("cut", links, hold, func(l *link.Link) error { l.Cut(); return nil })
	}
	return n.wires("nothing passes", links, hold, (*link.Link).Stall)
}

// N5: connections are reset, or cut within a message.
func (n *Nemesis) reset() (Case, bool) {
	links := n.links(false)
	switch n.random.IntN(3) {
	case 0:
		bytes := n.random.Int64N(4096)
		return n.wires(fmt.Sprintf("cut after %d bytes sent over", bytes), links, n.between(time.Second, 4*time.Second),
			func(l *link.Link) error { return l.Truncate(bytes) })
	case 1:
		bytes := 1 + n.random.Int64N(400)
		return n.wires(fmt.Sprintf("cut after %d bytes answered over", bytes), links, n.between(time.Second, 4*time.Second),
			func(l *link.Link) error { return l.Deafen(bytes) })
	default:
		return n.wires("reset", links, time.Second, (*link.Link).Reset)
	}
}

// N6: requests arrive and answers do not: produce replies, COMMIT replies, the engine's answers, our own answers to clients.
func (n *Nemesis) loseAck() (Case, bool) {
	names := []string{"edge-1>kafka", "edge-2>kafka", "relay-1>postgres", "relay-2>postgres", "relay-1>engine", "relay-2>engine", "relay-1>kafka",
		"relay-2>kafka", "control>postgres", "clients>edge-1", "clients>edge-2", "clients>control"}
	if n.Redis {
		names = append(names, "edge-1>redis", "edge-2>redis", "control>redis")
	}
	l := n.Topology.Links[pick(n, names...)]
	return n.wires("answers are lost on", []*link.Link{l}, n.between(time.Second, 6*time.Second), func(l *link.Link) error { return l.Deafen(0) })
}
