package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"storefront.internal/deploy/faults/campaign"
	"storefront.internal/deploy/faults/nemesis"
	"storefront.internal/deploy/faults/report"
	"storefront.internal/deploy/faults/scenario"
	"storefront.internal/deploy/faults/topology"
	"storefront.internal/deploy/local/project"
	"storefront.internal/deploy/stack"
)

// options are the flags of `faults run`.
type options struct {
	minutes  float64
	seed     uint64
	signals  int
	faults   string
	redis    bool
	short    bool
	keep     bool
	brokers  int
	shops    int
	rate     float64
	bin      string
	markdown string
	json     string
}

func parse(args []string) (options, error) {
	var o options
	f := flag.NewFlagSet("faults run", flag.ContinueOnError)
	f.Float64Var(&o.minutes, "minutes", 10, "time of fault injection")
	f.IntVar(&o.signals, "signals", 0,
		"go on until clients have created so many signals, at most half as long again")
	f.Uint64Var(&o.seed, "seed", 0, "of the schedule and the load; 0: a random one")
	f.StringVar(&o.faults, "faults", "", "kinds to inject: N1,N2,…; all when empty")
	f.BoolVar(&o.redis, "redis", true, "inject faults of Redis; without them no id may be accepted twice")
	f.BoolVar(&o.short, "short", false, "short faults and no full disks")
	f.BoolVar(&o.keep, "keep", false, "keep the folder of a run without findings")
	f.Float64Var(&o.rate, "rate", 400, "new signals a second")
	f.IntVar(&o.shops, "connections", campaign.UsualConnections, "connections that the load is spread over")
	f.IntVar(&o.brokers, "brokers", 0, "brokers of Kafka; 0: three where memory allows")
	f.StringVar(&o.bin, "bin", "", "folder of the binaries; they are built when empty")
	f.StringVar(&o.markdown, "markdown", "", "write the report as Markdown to this file")
	f.StringVar(&o.json, "json", "", "write the report as JSON to this file")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if o.seed == 0 {
		o.seed = rand.Uint64N(1_000_000_000) + 1 // a seed that a person can type
	}
	return o, nil
}

// kinds returns the kinds to inject.
func (o options) kinds() ([]string, error) {
	var all []string
	for _, k := range nemesis.Kinds() {
		all = append(all, k.Name)
	}
	if o.faults == "" {
		return all, nil
	}
	wanted := strings.Split(strings.ToUpper(o.faults), ",")
	for _, k := range wanted {
		if !slices.Contains(all, k) {
			return nil, fmt.Errorf("unknown fault %q: %s", k, strings.Join(all, ","))
		}
	}
	return wanted, nil
}

// reproducer returns the command that repeats the run.
func (o options) reproducer() string {
	text := fmt.Sprintf("make faults MINUTES=%g SEED=%d", o.minutes, o.seed)
	if o.signals > 0 {
		text += fmt.Sprintf(" SIGNALS=%d", o.signals)
	}
	if o.faults != "" {
		text += " FAULTS=" + o.faults
	}
	if o.brokers > 0 {
		text += fmt.Sprintf(" BROKERS=%d", o.brokers)
	}
	if o.shops != campaign.UsualConnections {
		text += fmt.Sprintf(" CONNECTIONS=%d", o.shops)
	}
	if !o.redis {
		text += " REDIS=false"
	}
	return text
}

func runCommand(ctx context.Context, args []string) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	e, err := newEnvironment()
	if err != nil {
		return err
	}
	r, err := runCampaign(ctx, o, e)
	if err != nil {
		return err
	}
	if err := r.Markdown(os.Stdout); err != nil {
		return err
	}
	for path, write := range map[string]func(io.Writer) error{o.markdown: r.Markdown, o.json: r.JSON} {
		if path == "" {
			continue
		}
		f, err := os.Create(path)
		if err != nil {
			return err
		}
		if err := errors.Join(write(f), f.Close()); err != nil {
			return err
		}
	}
	if r.Failed() {
		return errFound
	}
	return nil
}

// runCampaign makes a run in a new folder, which is kept when the run finds something or fails.
func runCampaign(ctx context.Context, o options, e environment) (*report.Report, error) {
	kinds, err := o.kinds()
	if err != nil {
		return nil, err
	}
	e.logf("seed %d, folder %s", o.seed, e.dir)
	cfg := campaign.Config{Project: e.project, Bin: o.bin, Dir: e.dir,
		Length:  time.Duration(o.minutes * float64(time.Minute)),
		Signals: o.signals, Seed: o.seed, Kinds: kinds, Redis: o.redis, Short: o.short, Rate: o.rate,
		Brokers: o.brokers, Connections: o.shops, Logf: e.logf}
	if cfg.Brokers == 0 {
		cfg.Brokers = topology.AffordableBrokers()
	}
	if cfg.Bin == "" {
		cfg.Bin = filepath.Join(e.dir, "bin")
		if err := stack.Build(ctx, e.project, cfg.Bin, nil, scenario.AllPrograms()...); err != nil {
			return nil, err
		}
	}
	if slices.Contains(kinds, "N13") && !o.short {
		cfg.ChaosBin = filepath.Join(e.dir, "chaos")
		if err := stack.Build(ctx, e.project, cfg.ChaosBin, []string{"-tags=chaos"},
			scenario.Edge); err != nil {
			return nil, err
		}
	}
	r, err := campaign.Run(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("%w (the folder is %s, the command %s)", err, e.dir, o.reproducer())
	}
	r.Reproducer, r.Commit = o.reproducer(), commit(ctx, e.project)
	if r.Failed() || o.keep {
		r.Dir = e.dir
		return r, nil
	}
	return r, os.RemoveAll(e.dir)
}

// commit returns the tested commit, or "".
func commit(ctx context.Context, p project.Project) string {
	cmd := exec.CommandContext(ctx, "git", "rev-parse", "--short=12", "HEAD")
	cmd.Dir = p.Root
	out, err := cmd.Output()
	if err != nil {
		return "" // there is no version control
	}
	return strings.TrimSpace(string(out))
}
