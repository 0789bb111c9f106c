// Package load runs the clients of a fault run: storefront pages that ask for recommendations, send signals
// and send again what got no response; readers of items; a connector; a merchant who changes products; a
// backend that replaces keys. The clients record all their calls and know nothing about faults.
package load

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"storefront.internal/deploy/faults/recording"
	"storefront.internal/deploy/load"
	"storefront.internal/deploy/stack/client"
	"storefront.internal/shared/backoff"
)

// Config of a load.
type Config struct {
	Client      recording.Client // a template: each client gets a number
	Edges       []recording.Endpoint
	API         client.Internal // to prepare the shop
	ProviderURL string          // of the fake provider
	AppID       string
	ShopID      string // of the shop at the fake provider
	Products    int    // of that shop

	Seed        uint64
	Rate        float64 // new signals a second of all clients together
	Clients     int
	Connections int // custom connections, in addition to the provider's
	Logf        func(format string, args ...any)
}

// Load is a running load.
type Load struct {
	Config
	connections []*connection // the last one is the merchant's
	merchant    *merchant
	clients     sync.WaitGroup
	cancel      context.CancelFunc
	stopping    chan struct{} // closed when no new work may begin
	stopOnce    sync.Once
	created     atomic.Int64
	sent        atomic.Int64
	answered    atomic.Int64
}

// New makes a load that does not send anything yet.
func New(cfg Config) *Load {
	cfg.Client.HTTP = recording.NewHTTP()
	return &Load{Config: cfg, stopping: make(chan struct{})}
}

// Open creates the connections with their keys and catalogs, and waits until the provider's shop is loaded.
func (l *Load) Open(ctx context.Context) error {
	l.connections = make([]*connection, l.Connections)
	err := together(l.Connections, func(i int) (err error) {
		l.connections[i], err = l.openCustom(ctx, fmt.Sprintf("store-%d-%d", l.Seed, i), l.random(1_000+i))
		if err != nil {
			err = fmt.Errorf("connection %d: %w", i, err)
		}
		return err
	})
	if err != nil {
		return err
	}
	m, err := l.install(ctx)
	if err != nil {
		return fmt.Errorf("install the shop: %w", err)
	}
	l.merchant = m
	l.connections = append(l.connections, m.connection)
	random := l.random(999)
	for _, c := range l.connections { // a Decision that is recorded before the first fault
		for i := 0; ; i++ {
			l.recommend(ctx, l.Client, c, l.Edges[i%len(l.Edges)], random)
			if d, ok := c.decision(random); ok {
				c.first = d
				break
			}
			if err := backoff.Sleep(ctx, 200*time.Millisecond); err != nil {
				return fmt.Errorf("no recommendation for %s: %w", c.id, err)
			}
		}
	}
	return nil
}

// together makes n calls, a few at a time, and returns the first error.
func together(n int, call func(i int) error) error {
	var all errgroup.Group
	all.SetLimit(8)
	for i := range n {
		all.Go(func() error { return call(i) })
	}
	return all.Wait()
}

// Run starts the clients.
func (l *Load) Run(ctx context.Context) {
	ctx, l.cancel = context.WithCancel(ctx)
	pause := time.Duration(float64(l.Clients) * meanBatch / l.Rate * float64(time.Second))
	number := 0
	start := func(n int, run func(ctx context.Context, c recording.Client, random *rand.Rand)) {
		for range n {
			number++
			c, random := l.Client, l.random(number)
			c.Number = number
			l.clients.Go(func() { run(ctx, c, random) })
		}
	}
	start(l.Clients, func(ctx context.Context, c recording.Client,
		random *rand.Rand) {
		l.sendSignals(ctx, c, random, pause)
	})
	start(4, l.readItems)
	start(2, l.deliverObservations)
	start(1, l.changeProducts)
	start(1, l.replaceKeys)
	start(1, l.eraseVisitors)
	start(1, l.redactBuyers)
	for _, s := range l.steadyCalls() {
		start(1, func(ctx context.Context, c recording.Client, random *rand.Rand) {
			l.callSteadily(ctx, c, random, s)
		})
	}
}

// Stop lets each client finish its work and cancels the work after the timeout.
func (l *Load) Stop(timeout time.Duration) {
	l.stopOnce.Do(func() { close(l.stopping) })
	done := make(chan struct{})
	go func() { l.clients.Wait(); close(done) }()
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
		l.Logf("load: canceled after %s", timeout)
		l.cancel()
		<-done
	}
	l.cancel()
}

// Created returns the number of distinct signals.
func (l *Load) Created() int { return int(l.created.Load()) }

// Sent returns how many signals were sent, resends included, and how many results the responses had.
func (l *Load) Sent() (sent, answered int64) { return l.sent.Load(), l.answered.Load() }

func (l *Load) random(n int) *rand.Rand {
	return rand.New(rand.NewPCG(l.Seed, uint64(n))) // not secret
}

// pause waits and reports whether the client shall go on.
func (l *Load) pause(ctx context.Context, d time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	select {
	case <-l.stopping:
		return false
	case <-ctx.Done():
		return errors.Is(ctx.Err(), context.DeadlineExceeded)
	}
}

// retry makes a call until its outcome is final or the context ends, with a growing pause between the
// attempts.
func retry(ctx context.Context, random *rand.Rand, attempts int, call func() (final bool)) {
	policy := backoff.Policy{Min: 200 * time.Millisecond, Max: 3 * time.Second}
	for n := 1; !call() && n < attempts; n++ {
		if backoff.Sleep(ctx, jitter(random, policy.Full(n))) != nil {
			return
		}
	}
}

const forever = 1 << 30

func jitter(random *rand.Rand, d time.Duration) time.Duration {
	return d/2 + time.Duration(random.Int64N(int64(d)+1))
}

// Probe sends one new signal of a connection to an edge until it is accepted, and returns where to look for
// it. It uses the connection's first Decision: later ones may never be recorded.
func (l *Load) Probe(ctx context.Context, edge int) (connection, signal string, err error) {
	random := l.random(int(rand.Int32()))
	c := l.connections[random.IntN(len(l.connections))]
	s := recording.Signal{Signal: client.Signal{ID: "sig_" + load.RandomName(random), Type: "dismiss",
		DecisionID: c.first.ID, ItemID: c.first.Items[0].ItemID, OccurredAt: client.Timestamp(time.Now())}}
	s.Visitor.VisitorID = c.visitor(s.ID)
	number := l.Client
	number.Number = 800 + edge
	for !l.post(ctx, number, c, l.Edges[edge], []recording.Signal{s}) {
		if err := backoff.Sleep(ctx, 200*time.Millisecond); err != nil {
			return "", "", err
		}
	}
	return c.id, s.ID, nil
}

// Target is a connection that abusive clients attack.
type Target struct {
	Connection, Decision, Item string
	Key                        client.Key
}

// Target picks a connection.
func (l *Load) Target(random *rand.Rand) Target {
	c := l.connections[random.IntN(len(l.connections))]
	t := Target{Connection: c.id, Key: c.currentKey()}
	if d, ok := c.decision(random); ok {
		t.Decision, t.Item = d.ID, d.Items[0].ItemID
	}
	return t
}

// readItems reads items.
func (l *Load) readItems(ctx context.Context, client recording.Client, random *rand.Rand) {
	for l.pause(ctx, jitter(random, 150*time.Millisecond)) {
		c, _ := l.twoConnections(random)
		if item, ok := c.item(random); ok {
			client.GetItem(ctx, l.Edges[random.IntN(len(l.Edges))], c.id, c.currentKey(), item)
		}
	}
}

// replaceKeys issues a new key for the pages of a connection, revokes the old one, and uses revoked keys.
func (l *Load) replaceKeys(ctx context.Context, client recording.Client, random *rand.Rand) {
	for l.pause(ctx, jitter(random, 5*time.Second)) {
		c, _ := l.twoConnections(random)
		key, err := client.IssueKey(ctx, c.id)
		if err != nil {
			continue
		}
		old := c.replaceKey(key)
		if !l.pause(ctx, jitter(random, 2*time.Second)) {
			return
		}
		retry(ctx, random, forever, func() bool {
			e := client.RevokeKey(ctx, c.id, old)
			if e.Status/100 == http.StatusOK/100 {
				c.retire(old)
			}
			return recording.Final(e)
		})
		if item, ok := c.item(random); ok {
			for _, key := range c.retiredKeys() {
				for _, edge := range l.Edges {
					client.GetItem(ctx, edge, c.id, key, item)
				}
			}
		}
	}
}
