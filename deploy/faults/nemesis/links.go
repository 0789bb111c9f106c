package nemesis

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"storefront.internal/deploy/stack/link"
)

// links returns a random link, or all links of a process.
func (n *Nemesis) links(allOf bool) []*link.Link {
	var names []string
	all := n.Topology.Links()
	for name := range all {
		if strings.HasPrefix(name, "clients>engine") || strings.HasPrefix(name, "clients>provider") {
			continue // not used
		}
		if n.Redis || !strings.HasSuffix(name, ">redis") {
			names = append(names, name)
		}
	}
	slices.Sort(names) // the order must depend on the seed only
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
		out = append(out, all[name])
	}
	return out
}

// linkFault disturbs links.
func (n *Nemesis) linkFault(what string, links []*link.Link, d time.Duration,
	disturb func(*link.Link) error) (Operation, bool) {
	var names []string
	for _, l := range links {
		names = append(names, l.Name)
	}
	each := func(do func(*link.Link) error) func(context.Context) error {
		return func(context.Context) error {
			var errs []error
			for _, l := range links {
				errs = append(errs, do(l))
			}
			return errors.Join(errs...)
		}
	}
	return Operation{Fault: fault{each(disturb), each((*link.Link).Heal)},
		Detail:  what + " " + strings.Join(names, ", "),
		Targets: names, Duration: d}, true
}

// N3: add latency, limit the bandwidth or send small packets.
func (n *Nemesis) slow() (Operation, bool) {
	links, hold := n.links(n.random.IntN(4) == 0), n.randomDuration(3*time.Second, 15*time.Second)
	switch n.random.IntN(4) {
	case 0:
		return n.linkFault("10 KB/s on", links, hold, func(l *link.Link) error { return l.Narrow(10) })
	case 1:
		return n.linkFault("small packets on", links, hold,
			func(l *link.Link) error { return l.Slice(64, 200*time.Microsecond) })
	default:
		latency := n.randomDuration(50*time.Millisecond, 2*time.Second)
		return n.linkFault(fmt.Sprintf("%s on", latency.Round(time.Millisecond)), links, hold,
			func(l *link.Link) error { return l.Slow(latency, latency/4) })
	}
}

// N4: a network partition. Either no data passes, or connections are closed and refused.
func (n *Nemesis) partition() (Operation, bool) {
	links, hold := n.links(n.random.IntN(3) == 0), n.randomDuration(2*time.Second, 15*time.Second)
	if n.random.IntN(2) == 0 {
		return n.linkFault("cut", links, hold, func(l *link.Link) error { l.Cut(); return nil })
	}
	return n.linkFault("no data passes", links, hold, (*link.Link).Stall)
}

// N5: reset connections, or close them within a message.
func (n *Nemesis) reset() (Operation, bool) {
	links := n.links(false)
	switch n.random.IntN(3) {
	case 0:
		bytes := n.random.Int64N(4096)
		return n.linkFault(fmt.Sprintf("closed after %d bytes sent over", bytes), links,
			n.randomDuration(time.Second, 4*time.Second),
			func(l *link.Link) error { return l.Truncate(bytes) })
	case 1:
		bytes := 1 + n.random.Int64N(400)
		return n.linkFault(fmt.Sprintf("closed after %d bytes received over", bytes), links,
			n.randomDuration(time.Second, 4*time.Second),
			func(l *link.Link) error { return l.Deafen(bytes) })
	default:
		return n.linkFault("reset", links, time.Second, (*link.Link).Reset)
	}
}

// N6: lose the responses of Kafka, PostgreSQL, Redis, the engine or the services.
func (n *Nemesis) loseAck() (Operation, bool) {
	broker := pick(n, n.Topology.Brokers...).Name
	names := []string{"edge-1>" + broker, "edge-2>" + broker, "relay-1>postgres", "relay-2>postgres",
		"relay-1>engine", "relay-2>engine", "relay-1>" + broker, "relay-2>" + broker, "control>postgres",
		"clients>edge-1", "clients>edge-2", "clients>control"}
	if n.Redis {
		names = append(names, "edge-1>redis", "edge-2>redis", "control>redis")
	}
	l := n.Topology.Links()[pick(n, names...)]
	return n.linkFault("responses are lost on", []*link.Link{l}, n.randomDuration(time.Second, 6*time.Second),
		func(l *link.Link) error { return l.Deafen(0) })
}
