package nemesis

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"storefront.internal/deploy/faults/history"
	"storefront.internal/deploy/faults/liveness"
	"storefront.internal/deploy/faults/load"
	"storefront.internal/deploy/stack"
	"storefront.internal/deploy/stack/link"
	"storefront.internal/shared/backoff"
)

// SingleKind is the kind of the faults of Single.
const SingleKind = "N16"

// shortLength is the length of a case in a short run.
const shortLength = 7 * time.Second

// cases returns the possible cases. Those of Redis need Config.Redis.
func (n *Nemesis) cases() []liveness.Case {
	var all []liveness.Case
	for _, c := range liveness.Cases(len(n.Topology.Brokers)) {
		if n.Redis || c.Dependency != liveness.Redis {
			all = append(all, c)
		}
	}
	return all
}

// nextCase returns the next case of a shuffled deck. In the first deck those of PostgreSQL come first: as
// long as no fault has cost Redis its memory, recording must go on in them.
func (n *Nemesis) nextCase() liveness.Case {
	if len(n.deck) == 0 {
		n.deck = n.cases()
		n.random.Shuffle(len(n.deck), func(i, j int) { n.deck[i], n.deck[j] = n.deck[j], n.deck[i] })
		if n.singles == 0 {
			slices.SortStableFunc(n.deck, func(a, b liveness.Case) int {
				return cmp.Compare(rank(a), rank(b))
			})
		}
	}
	c := n.deck[0]
	n.deck = n.deck[1:]
	n.singles++
	return c
}

func rank(c liveness.Case) int {
	if c.Dependency == liveness.Postgres {
		return 0
	}
	return 1
}

// Single takes the next dependency down while nothing else is disturbed.
func (n *Nemesis) Single(ctx context.Context, cold func(context.Context) bool,
	recovery func(context.Context)) {
	n.Outage(ctx, n.nextCase(), cold, recovery)
}

// Outage takes a dependency down and records that. recovery returns when each edge accepts signals again and
// the engine gets them. Of an outage that the end of the context shortens, nothing is judged.
func (n *Nemesis) Outage(ctx context.Context, c liveness.Case, cold func(context.Context) bool,
	recovery func(context.Context)) {
	targets := n.targets(c.Dependency)
	length := c.Length
	if n.Short {
		length = min(length, shortLength)
	}
	if backoff.Sleep(ctx, liveness.Before+liveness.Timely) != nil {
		return
	}
	f := history.Fault{Kind: SingleKind, Detail: c.Name(), Case: c.Name(), Cold: cold(ctx)}
	if len(targets) > 0 {
		f.Target = targets[0].Name
	}
	do := n.outage(targets, c.How)
	n.Logf("%s %s, for %s", SingleKind, strings.TrimSpace(f.Detail+" "+f.Target), length)
	f.At = n.Recorder.Now()
	n.inject(ctx, do, c.Name())
	interrupted := backoff.Sleep(ctx, length) != nil
	f.Until = n.Recorder.Now()
	n.heal(ctx, do, c.Name())
	healed := n.Recorder.Now()
	recovery(ctx)
	// The time that the fault itself needs to end, such as the start of a killed broker, is no recovery.
	f.Recovered = n.Recorder.Now() - (healed - f.Until)
	if interrupted || ctx.Err() != nil {
		f.Case, f.Recovered = "", 0
	}
	n.count(SingleKind)
	n.Recorder.RecordFault(f)
}

// targets returns the processes that a case takes down.
func (n *Nemesis) targets(d liveness.Dependency) []*stack.Process {
	x := n.Topology
	switch d {
	case liveness.Postgres:
		return []*stack.Process{x.Postgres}
	case liveness.Redis:
		return []*stack.Process{x.Redis}
	case liveness.Engine:
		return []*stack.Process{x.Engine}
	case liveness.Provider:
		return []*stack.Process{x.Provider}
	case liveness.Relay:
		return x.Relays
	case liveness.Control:
		return []*stack.Process{x.Control}
	case liveness.Clients:
		return nil
	case liveness.Edge:
		return []*stack.Process{pick(n, x.Edges...)}
	default:
		return []*stack.Process{pick(n, x.Brokers...)}
	}
}

// outage takes processes down.
func (n *Nemesis) outage(targets []*stack.Process, how liveness.How) Fault {
	var links []*link.Link
	for _, p := range targets {
		links = append(links, n.Topology.LinksTo(p.Name)...)
	}
	switch how {
	case liveness.Greedy:
		random := rand.New(rand.NewPCG(n.Seed, n.random.Uint64())) // not secret
		return &background{run: (&greedyClients{edges: n.Topology.Edges, target: n.Target(random)}).run}
	case liveness.Failing: // only of the engine
		r := response{"status": http.StatusServiceUnavailable}
		url := targets[0].URL
		return fault{setBehaviour(url, map[string]any{"interactions": r, "observations": r,
			"recommendations": r}), setBehaviour(url, struct{}{})}
	case liveness.Hung:
		return fault{each(targets, func(_ context.Context, p *stack.Process) error { return p.Pause() }),
			each(targets, func(_ context.Context, p *stack.Process) error { return p.Resume() })}
	case liveness.BlackHoled:
		return fault{each(links, func(_ context.Context, l *link.Link) error { return l.Stall() }),
			each(links, func(_ context.Context, l *link.Link) error { return l.Heal() })}
	default:
		return fault{each(targets, func(ctx context.Context, p *stack.Process) error { return p.Kill(ctx) }),
			each(targets, func(ctx context.Context, p *stack.Process) error { return p.Start(ctx) })}
	}
}

// each does something with all elements at the same time.
func each[T any](all []T, do func(context.Context, T) error) func(context.Context) error {
	return func(ctx context.Context) error {
		errs := make([]error, len(all))
		var wait sync.WaitGroup
		for i, one := range all {
			wait.Go(func() { errs[i] = do(ctx, one) })
		}
		wait.Wait()
		return errors.Join(errs...)
	}
}

// greedyClients connect, announce a body, send its begin and leave.
type greedyClients struct {
	edges  []*stack.Process
	target load.Target
}

// greedyPause is the pause of each client between two connections.
const greedyPause = 20 * time.Millisecond

func (g *greedyClients) run(ctx context.Context) {
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			address := strings.TrimPrefix(g.edges[i%len(g.edges)].URL, "http://")
			for backoff.Sleep(ctx, greedyPause) == nil {
				g.announce(ctx, address)
			}
		})
	}
	all.Wait()
}

func (g *greedyClients) announce(ctx context.Context, address string) {
	c, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "tcp", address)
	if err != nil {
		return
	}
	fmt.Fprintf(c, "POST /v1/connections/%s/storefront-signals HTTP/1.1\r\nHost: x\r\n"+
		"Authorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: 200000\r\n\r\n{",
		g.target.Connection, g.target.Key.Secret)
	_ = backoff.Sleep(ctx, greedyPause) // the edge reads the header
	_ = c.Close()
}
