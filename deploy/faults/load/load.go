// Package load is the clients of a fault run: shoppers' pages that recommend, signal and resend what was not answered, readers of
// items, connectors, a merchant who changes products, and a backend that issues and revokes keys. It behaves as real clients do
// and writes down everything that it sent and was told; it judges nothing and knows of no fault.
package load

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"storefront.internal/deploy/faults/history"
)

// Config of a load.
type Config struct {
	Recorder *history.Recorder
	Edges    []Place // behind the links of their callers
	Control  Place
	Provider string // base URL of the fake provider, without a link
	Store    string // the provider's store
	Products int    // of that store

	ConnectorToken, BackendToken, AppID, AppSecret string

	Seed        uint64
	Rate        float64 // new signals a second, of all clients together, while they are answered
	Clients     int
	Connections int // custom ones; the provider's store is another
	Say         func(format string, args ...any)
}

// Place is a process that can be called.
type Place struct{ Name, URL string }

// Load is a running load.
type Load struct {
	Config
	wire     *wire
	shops    []*shop
	merchant *merchant
	clients  sync.WaitGroup
	stop     context.CancelFunc
	ending   chan struct{} // closed when no new work is to begin
	once     sync.Once
	made     atomic.Int64
	sent     atomic.Int64
	told     atomic.Int64
}

// New makes a load; nothing is sent yet.
func New(cfg Config) *Load {
	return &Load{Config: cfg, wire: newWire(), ending: make(chan struct{})}
}

// Open makes the connections, their keys and catalogs, and waits until the provider's store is loaded.
func (l *Load) Open(ctx context.Context) error {
	for i := range l.Connections {
		s, err := l.openShop(ctx, fmt.Sprintf("store-%d-%d", l.Seed, i), l.random(1_000+i))
		if err != nil {
			return fmt.Errorf("connection %d: %w", i, err)
		}
		l.shops = append(l.shops, s)
	}
	if err := l.openStore(ctx); err != nil {
		return err
	}
	return l.firstDecisions(ctx)
}

// firstDecisions lets every shop's pages have a Decision that was recorded before anything failed.
func (l *Load) firstDecisions(ctx context.Context) error {
	random := l.random(999)
	for _, s := range l.shops {
		for i := 0; ; i++ {
			l.recommend(ctx, 0, s, l.Edges[i%len(l.Edges)], random)
			if d, some := s.decide(random); some {
				s.first = d
				break
			}
			if !wait(ctx, 200*time.Millisecond) {
				return fmt.Errorf("no recommendation for %s: %w", s.connection, ctx.Err())
			}
		}
	}
	return nil
}

// Run starts the clients.
func (l *Load) Run(ctx context.Context) {
	ctx, l.stop = context.WithCancel(ctx)
	pause := time.Duration(float64(l.Clients) * meanBatch / l.Rate * float64(time.Second))
	client := 0
	start := func(n int, run func(ctx context.Context, client int, random *rand.Rand)) {
		for range n {
			client++
			id, random := client, l.random(client)
			l.clients.Go(func() { run(ctx, id, random) })
		}
	}
	start(l.Clients, func(ctx context.Context, id int, random *rand.Rand) { l.signals(ctx, id, random, pause) })
	start(4, l.reads)
	start(2, l.observes)
	start(1, l.changes)
	start(1, l.keys)
}

// Finish lets every client end what it has begun, within a time, and then cuts them off. It is called after the last heal.
func (l *Load) Finish(within time.Duration) {
	l.once.Do(func() { close(l.ending) })
	done := make(chan struct{})
	go func() { l.clients.Wait(); close(done) }()
	timer := time.NewTimer(within)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
		l.Say("load: cut off after %s", within)
		l.stop()
		<-done
	}
	l.stop()
}

// Made is how many signals there are so far, each counted once.
func (l *Load) Made() int { return int(l.made.Load()) }

// Sent is how many signals were sent so far, resent ones included; Told how many of those were answered by a result.
func (l *Load) Sent() (sent, told int64) { return l.sent.Load(), l.told.Load() }

func (l *Load) random(n int) *rand.Rand { return rand.New(rand.NewPCG(l.Seed, uint64(n))) } //nolint:gosec // a number

// rest pauses a client; it answers false when the client is to end.
func (l *Load) rest(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-l.ending:
	case <-ctx.Done():
	}
	return l.goesOn(ctx)
}

func (l *Load) goesOn(ctx context.Context) bool {
	select {
	case <-l.ending:
		return false
	case <-ctx.Done():
		return false
	default:
		return true
	}
}

// wait pauses within a piece of work, which is to be ended even when the load ends.
func wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func around(random *rand.Rand, d time.Duration) time.Duration {
	return d/2 + time.Duration(random.Int64N(int64(d)+1))
}

var errRefused = errors.New("refused")
