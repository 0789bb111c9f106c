// Package campaign runs one fault run: it starts the deployment and the load, lets the nemesis inject faults,
// waits until the deployment is idle, and checks the history and the state.
package campaign

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"storefront.internal/deploy/faults/check"
	"storefront.internal/deploy/faults/collect"
	"storefront.internal/deploy/faults/history"
	"storefront.internal/deploy/faults/load"
	"storefront.internal/deploy/faults/nemesis"
	"storefront.internal/deploy/faults/recording"
	"storefront.internal/deploy/faults/report"
	"storefront.internal/deploy/faults/topology"
	"storefront.internal/deploy/local/project"
	"storefront.internal/deploy/stack"
	"storefront.internal/shared/backoff"
)

// Config of a run.
type Config struct {
	Project  project.Project
	Bin      string // folder of the binaries under test
	ChaosBin string // the same with a clock that can be set; "": no faults of the clock
	Dir      string // of the run; every user may pass through it
	Length   time.Duration
	Signals  int // the run goes on until so many signals exist, at most half as long again
	Seed     uint64
	Kinds    []string
	Redis    bool // faults of Redis too
	Short    bool // short faults and no full disks
	Rate     float64
	Brokers  int // of Kafka
	// Connections is the number of connections beside the one at the fake provider.
	Connections int
	Logf        func(format string, args ...any)
}

// UsualConnections are so few that each of them meets many faults.
const UsualConnections = 6

// Time limits of a run. Exceeding one of them is not a finding, because the machine may be busy.
const (
	stopTimeout       = 2 * time.Minute
	idleTimeout       = 6 * time.Minute
	goroutinesTimeout = time.Minute // servers keep goroutines of closed connections for a while
	drainLimit        = time.Minute // of S10, in runs that are not short
)

type run struct {
	Config
	topology       *topology.Topology
	load           *load.Load
	nemesis        *nemesis.Nemesis
	recorder       *history.Recorder
	idleGoroutines map[string]float64 // of each process before the load
	unparked       map[string]bool    // parked records whose replay was requested
	out            *report.Report

	mu       sync.Mutex
	recovery []time.Duration
}

// Run makes a run and returns its report. An error means that nothing could be checked.
func Run(ctx context.Context, cfg Config) (_ *report.Report, err error) {
	r := &run{Config: cfg, unparked: map[string]bool{}}
	r.out = &report.Report{Seed: cfg.Seed, Begun: time.Now().UTC(), Asked: cfg.Length,
		Kinds: cfg.Kinds, RedisFaults: cfg.Redis, Brokers: cfg.Brokers, Connections: cfg.Connections}
	path := filepath.Join(cfg.Dir, "history.jsonl")
	file, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	r.topology, err = topology.Start(ctx, topology.Config{Project: cfg.Project, Bin: cfg.Bin, Dir: cfg.Dir,
		SmallDisks: !cfg.Short, Brokers: cfg.Brokers, Logf: cfg.Logf})
	if err != nil {
		return nil, fmt.Errorf("start the deployment: %w", err)
	}
	defer func() { err = errors.Join(err, r.topology.Close()) }()
	r.recorder = history.NewRecorder(file)
	if r.idleGoroutines, err = collect.Goroutines(ctx, collect.TargetsOf(r.topology)); err != nil {
		return nil, err
	}
	if err := r.injectFaults(ctx); err != nil {
		return nil, err
	}
	drain := r.drain(ctx)
	if err := r.recorder.Flush(); err != nil {
		return nil, err
	}
	return r.out, r.check(ctx, path, drain)
}

// injectFaults runs the load and the nemesis until the time is over.
func (r *run) injectFaults(ctx context.Context) error {
	x := r.topology
	endpoint := func(p *stack.Process) recording.Endpoint {
		return recording.Endpoint{Name: p.Name,
			URL: p.Via}
	}
	cfg := load.Config{
		Client: recording.Client{Recorder: r.recorder, Control: endpoint(x.Control),
			ConnectorToken: x.Settings.ConnectorToken,
			BackendToken:   x.Settings.BackendToken, AppSecret: x.Settings.AppSecret},
		API: x.API(), ProviderURL: x.Provider.URL, AppID: x.Settings.AppID, ShopID: topology.ShopID,
		Products: topology.Products,
		Seed:     r.Seed, Rate: r.Rate, Clients: 48, Connections: r.Connections, Logf: r.Logf,
	}
	for _, e := range x.Edges {
		cfg.Edges = append(cfg.Edges, endpoint(e))
	}
	r.load = load.New(cfg)
	if err := r.load.Open(ctx); err != nil {
		return fmt.Errorf("prepare the load: %w", err)
	}
	r.out.Started = time.Since(r.out.Begun)
	watching, unwatch := context.WithCancel(ctx)
	defer unwatch()
	go r.recorder.RecordStalls(watching)
	r.load.Run(ctx)
	r.nemesis = nemesis.New(nemesis.Config{
		Topology: x, Recorder: r.recorder, Seed: r.Seed, Kinds: r.Kinds, Redis: r.Redis, Short: r.Short,
		ChaosBin: r.ChaosBin, Logf: r.Logf,
		Target: func(random *rand.Rand) load.Target { return r.load.Target(random) },
	})
	begun := time.Now()
	injecting, cancel := context.WithCancel(ctx)
	go func() {
		defer cancel()
		more := func() bool {
			took := time.Since(begun)
			return took < r.Length || r.load.Created() < r.Signals && took < r.Length*3/2
		}
		for more() && backoff.Sleep(injecting, time.Second/2) == nil {
		}
	}()
	r.runEpisodes(injecting)
	r.out.Loaded = time.Since(begun)
	return ctx.Err()
}

// runEpisodes injects faults until the context ends. In the first part of a run one dependency after the
// other is down; after that every third episode is such a one.
func (r *run) runEpisodes(ctx context.Context) {
	pause := 2 * time.Second
	if r.Short {
		pause = 500 * time.Millisecond
	}
	single := slices.Contains(r.Kinds, nemesis.SingleKind)
	firstPart := time.Now().Add(r.Length / 3)
	logged := time.Now()
	for n := 1; ctx.Err() == nil; n++ {
		if single && (len(r.Kinds) == 1 || n%3 == 0 || time.Now().Before(firstPart)) {
			r.nemesis.Single(ctx, r.isCold, r.measureRecovery)
		} else {
			_ = backoff.Sleep(ctx, pause)
			r.runEpisode(ctx, n)
		}
		if time.Since(logged) > time.Minute {
			logged = time.Now()
			sent, answered := r.load.Sent()
			r.Logf("%d signals sent, %d answered, faults %v", sent, answered, r.nemesis.Counts())
		}
	}
}

// runEpisode injects one to four faults. Mostly it measures the recovery; in other cases, the next faults
// meet processes that are still recovering.
func (r *run) runEpisode(ctx context.Context, n int) {
	r.nemesis.Episode(ctx)
	if ctx.Err() == nil && (n%4 != 0 || (n+1)%3 == 0) {
		r.measureRecovery(ctx)
	}
}

func (r *run) isCold(ctx context.Context) bool {
	return collect.Cold(ctx, collect.TargetsOf(r.topology))
}

// drain lets the clients finish, waits until the deployment is idle, and resolves what waits for an operator
// or a connector. It returns how long the queue took to drain.
func (r *run) drain(ctx context.Context) time.Duration {
	logError := func(err error) {
		if err != nil {
			r.Logf("%v", err)
		}
	}
	for _, p := range r.topology.Processes() {
		logError(p.Start(ctx))
	}
	r.measureRecovery(ctx)
	r.load.Stop(stopTimeout)
	begun := time.Now()
	ctx, cancel := context.WithTimeout(ctx, idleTimeout)
	defer cancel()
	logError(r.topology.Ready(ctx))
	idle := func() error {
		_, err := collect.WaitIdle(ctx, collect.TargetsOf(r.topology))
		logError(err)
		return err
	}
	err := idle()
	drain := time.Since(begun)
	if err != nil {
		return drain
	}
	logError(r.load.CorrectCatalogs(ctx))
	for idle() == nil {
		resolved, err := r.resolve(ctx)
		logError(err)
		if resolved == 0 {
			break
		}
	}
	return drain
}

// awaitGoroutines waits until the processes have released the connections of the clients.
func (r *run) awaitGoroutines(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, goroutinesTimeout)
	defer cancel()
	for backoff.Sleep(ctx, time.Second) == nil {
		now, err := collect.Goroutines(ctx, collect.TargetsOf(r.topology))
		grown := err != nil
		for process, n := range now {
			grown = grown || check.GoroutinesGrew(r.idleGoroutines, process, n)
		}
		if !grown {
			return
		}
	}
}

func (r *run) check(ctx context.Context, path string, drain time.Duration) error {
	r.awaitGoroutines(ctx)
	state, err := collect.Read(ctx, collect.TargetsOf(r.topology))
	if err != nil {
		return err
	}
	state.Drain = drain
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	h, err := history.Read(file)
	if err != nil {
		return err
	}
	limit := drainLimit
	if r.Short {
		limit = idleTimeout
	}
	r.out.Findings, r.out.Figures = check.Run(h, state,
		check.Options{RedisFaults: r.Redis, DrainLimit: limit,
			Start: r.recorder.Start(), InFlight: topology.InFlight, Goroutines: r.idleGoroutines,
			Replayed: r.out.Replayed})
	r.out.Faults, r.out.Injected, r.out.Unhealed = len(h.Faults), r.nemesis.Counts(), r.nemesis.Failed()
	r.out.Recovery = check.NewPercentiles(r.recovery)
	for _, p := range r.topology.Processes() {
		for _, e := range p.Exits() {
			r.out.Exits = append(r.out.Exits, report.Exit{Process: p.Name, At: e.At.Sub(r.recorder.Start()),
				Status: e.Ending})
		}
	}
	r.out.Crashes, err = crashes(r.topology.LogDir)
	r.out.Took = time.Since(r.out.Begun)
	return err
}
