// Package campaign is one fault run: it starts a topology and a load, lets the nemesis play, heals, waits until everything has
// come to rest, and has the record judged. It owns the order of these and the run's folder; faults, clients and judgement are
// others' business.
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
	"storefront.internal/deploy/faults/report"
	"storefront.internal/deploy/faults/topology"
	"storefront.internal/deploy/local/project"
	"storefront.internal/shared/stream"
)

// Config of a run.
type Config struct {
	Project  project.Project
	Bin      string // the binaries under test
	ChaosBin string // the same with a clock that can be set; empty: no wrong clocks
	Dir      string // of the run; it must be there, and everybody may pass through it
	Length   time.Duration
	Signals  int // the run goes on until clients have made so many, for at most half as long again
	Seed     uint64
	Kinds    []string
	Redis    bool // faults of Redis too
	Hasty    bool // short faults, no full disks: for a run of a minute
	Rate     float64
	Say      func(format string, args ...any)
}

// The patience of a run. None of it is a judgement: a machine may be busy.
const (
	finishWithin = 2 * time.Minute
	quietWithin  = 6 * time.Minute
	drainLimit   = time.Minute
	idleWithin   = time.Minute // a server keeps the goroutines of ended connections for a while
)

// run is a run under way.
type run struct {
	Config
	topology *topology.Topology
	load     *load.Load
	nemesis  *nemesis.Nemesis
	recorder *history.Recorder
	rested   map[string]float64 // goroutines of each process before the load
	out      *report.Report

	mu       sync.Mutex
	recovery []time.Duration
}

// Run plays a whole run and answers its report. An error means that nothing could be judged.
func Run(ctx context.Context, cfg Config) (_ *report.Report, err error) {
	r := &run{Config: cfg, out: &report.Report{Seed: cfg.Seed, Begun: time.Now().UTC(), Asked: cfg.Length, Kinds: cfg.Kinds, RedisFaults: cfg.Redis}}
	path := filepath.Join(cfg.Dir, "history.jsonl")
	file, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	r.topology, err = topology.Start(ctx, topology.Config{Project: cfg.Project, Bin: cfg.Bin, Dir: cfg.Dir, Small: !cfg.Hasty, Say: cfg.Say})
	if err != nil {
		return nil, fmt.Errorf("start the topology: %w", err)
	}
	defer func() { err = errors.Join(err, r.topology.Close()) }()
	r.recorder = history.NewRecorder(file)
	if r.rested, err = collect.Goroutines(ctx, r.targets()); err != nil {
		return nil, err
	}
	if err := r.play(ctx); err != nil {
		return nil, err
	}
	drain := r.settle(ctx)
	if err := r.recorder.Flush(); err != nil {
		return nil, err
	}
	return r.out, r.judge(ctx, path, drain)
}

// play loads the topology and lets the nemesis go on until the time is over.
func (r *run) play(ctx context.Context) error {
	x, s := r.topology, r.topology.Settings()
	cfg := load.Config{
		Recorder: r.recorder, Control: load.Place{Name: x.Control.Name, URL: x.Control.Through}, Provider: x.Provider.URL, Store: topology.StoreID,
		Products: topology.Products, ConnectorToken: s.ConnectorToken, BackendToken: s.BackendToken, AppID: s.AppID, AppSecret: s.AppSecret,
		Seed: r.Seed, Rate: r.Rate, Clients: 48, Connections: 6, Say: r.Say,
	}
	for _, e := range x.Edges {
		cfg.Edges = append(cfg.Edges, load.Place{Name: e.Name, URL: e.Through})
	}
	r.load = load.New(cfg)
	if err := r.load.Open(ctx); err != nil {
		return fmt.Errorf("open the shops: %w", err)
	}
	r.out.Started = time.Since(r.out.Begun)
	r.load.Run(ctx)
	r.nemesis = nemesis.New(nemesis.Config{
		Topology: x, Recorder: r.recorder, Seed: r.Seed, Kinds: r.Kinds, Redis: r.Redis, Hasty: r.Hasty, ChaosBin: r.ChaosBin, Say: r.Say,
		Victim: func(random *rand.Rand) nemesis.Victim { return nemesis.Victim(r.load.Victim(random)) },
	})
	begun := time.Now()
	over, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		defer cancel()
		for ctx.Err() == nil && (time.Since(begun) < r.Length || r.load.Made() < r.Signals && time.Since(begun) < r.Length*3/2) {
			rest(over, time.Second/2)
		}
	}()
	r.untilOver(over)
	r.out.Loaded = time.Since(begun)
	return ctx.Err()
}

// untilOver plays episode after episode. After most of them the run waits until a fresh signal has come through, and measures
// that; after the others the next faults hit what is still recovering.
func (r *run) untilOver(ctx context.Context) {
	pause := 2 * time.Second
	if r.Hasty {
		pause = 500 * time.Millisecond
	}
	told := time.Now()
	for n := 1; ctx.Err() == nil; n++ {
		rest(ctx, pause)
		r.nemesis.Episode(ctx)
		if ctx.Err() == nil && n%4 != 0 {
			r.recover(ctx)
		}
		if time.Since(told) > time.Minute {
			told = time.Now()
			sent, results := r.load.Sent()
			r.Say("%d signals sent, %d answered, faults %v", sent, results, r.nemesis.Counts())
		}
	}
}

// settle lets the clients end what they began, replays what died, and waits until everything has come to rest.
func (r *run) settle(ctx context.Context) (drain time.Duration) {
	x := r.topology
	for _, u := range x.Units() {
		if err := u.Start(ctx); err != nil {
			r.Say("%v", err)
		}
	}
	r.recover(ctx)
	r.load.Finish(finishWithin)
	begun := time.Now()
	ctx, cancel := context.WithTimeout(ctx, quietWithin)
	defer cancel()
	if err := x.Ready(ctx); err != nil {
		r.Say("%v", err)
	}
	for {
		_, err := collect.Quiet(ctx, r.targets())
		drain = time.Since(begun)
		if err != nil {
			r.Say("%v", err)
			return drain
		}
		replayed, err := r.replayDead(ctx)
		if err != nil {
			r.Say("replay: %v", err)
		}
		if r.out.Replayed += replayed; replayed == 0 {
			return drain
		}
	}
}

func (r *run) targets() collect.Targets {
	x := r.topology
	t := collect.Targets{
		DatabaseURL: x.DatabaseURL(), Brokers: []string{x.Brokers()}, Topic: stream.TopicSignals, Group: nemesis.RelayGroup,
		Topics: []string{stream.TopicSignals, stream.TopicDecisions}, EngineURL: x.Engine.URL, ControlURL: x.Control.URL,
		BackendToken: x.Settings().BackendToken, ProviderURL: x.Provider.URL, RedisAddr: x.RedisAddr(), Admin: map[string]string{},
	}
	for _, s := range x.Services() {
		t.Admin[s.Name] = s.Admin
	}
	return t
}

// idle waits until the processes have let go of the clients' connections, or had idleWithin for it: the judge looks then.
func (r *run) idle(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, idleWithin)
	defer cancel()
	for topology.Sleep(ctx, time.Second) == nil {
		now, err := collect.Goroutines(ctx, r.targets())
		grown := err != nil
		for process, n := range now {
			grown = grown || check.Grown(r.rested, process, n)
		}
		if !grown {
			return
		}
	}
}

// judge reads everything and has it checked.
func (r *run) judge(ctx context.Context, path string, drain time.Duration) error {
	r.idle(ctx)
	state, err := collect.Read(ctx, r.targets())
	if err != nil {
		return err
	}
	state.Drain = drain
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	events, faults, err := history.Read(file)
	if err != nil {
		return err
	}
	limit := drainLimit
	if r.Hasty {
		limit = quietWithin // how fast a busy machine drains is no finding of a short run
	}
	r.out.Findings, r.out.Figures = check.Run(events, faults, state, check.Options{RedisFaults: r.Redis, DrainLimit: limit,
		Start: r.recorder.Start(), InFlight: topology.InFlight, Goroutines: r.rested})
	r.out.Faults, r.out.Injected, r.out.Unhealed = len(faults), r.nemesis.Counts(), r.nemesis.Failed()
	slices.Sort(r.recovery)
	r.out.Recovery = report.Spread(r.recovery)
	for _, u := range r.topology.Units() {
		for _, f := range u.Falls() {
			r.out.Falls = append(r.out.Falls, report.Fall{Process: u.Name, At: f.At.Sub(r.recorder.Start()), Ending: f.Ending})
		}
	}
	crashes, err := crashes(r.topology.LogDir())
	r.out.Crashes = crashes
	r.out.Took = time.Since(r.out.Begun)
	return err
}

func rest(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
