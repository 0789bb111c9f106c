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
	"storefront.internal/deploy/local/project"
)

// options are the flags of `faults run`.
type options struct {
	minutes  float64
	seed     uint64
	signals  int
	faults   string
	redis    bool
	hasty    bool
	keep     bool
	rate     float64
	bin      string
	markdown string
	json     string
}

func parse(args []string) (options, error) {
	var o options
	f := flag.NewFlagSet("faults run", flag.ContinueOnError)
	f.Float64Var(&o.minutes, "minutes", 10, "how long faults are injected")
	f.IntVar(&o.signals, "signals", 0, "go on until clients have made so many signals, for at most half as long again")
	f.Uint64Var(&o.seed, "seed", 0, "of schedule and load; 0 draws one")
	f.StringVar(&o.faults, "faults", "", "kinds to inject, N1,N2,…; all when empty")
	f.BoolVar(&o.redis, "redis", true, "faults of Redis too; without them no id may be accepted twice")
	f.BoolVar(&o.hasty, "hasty", false, "short faults, and no full disks")
	f.BoolVar(&o.keep, "keep", false, "keep the folder of a clean run too")
	f.Float64Var(&o.rate, "rate", 400, "new signals a second, while they are answered")
	f.StringVar(&o.bin, "bin", "", "folder of the binaries; built when empty")
	f.StringVar(&o.markdown, "markdown", "", "write the report as Markdown to this file")
	f.StringVar(&o.json, "json", "", "write the report as JSON to this file")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if o.seed == 0 {
		o.seed = rand.Uint64N(1_000_000_000) + 1 //nolint:gosec // a seed that a person can type
	}
	return o, nil
}

// kinds reads the filter.
func (o options) kinds() ([]string, error) {
	all := nemesis.Kinds()
	if o.faults == "" {
		return all, nil
	}
	wanted := strings.Split(strings.ToUpper(o.faults), ",")
	for _, k := range wanted {
		if !slices.Contains(all, k) {
			return nil, fmt.Errorf("there is no fault %q: %s", k, strings.Join(all, ","))
		}
	}
	return wanted, nil
}

// reproducer is the command that plays the same schedule.
func (o options) reproducer() string {
	text := fmt.Sprintf("make faults MINUTES=%g SEED=%d", o.minutes, o.seed)
	if o.signals > 0 {
		text += fmt.Sprintf(" SIGNALS=%d", o.signals)
	}
	if o.faults != "" {
		text += " FAULTS=" + o.faults
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
	r, err := play(ctx, o, os.Stderr)
	if err != nil {
		return err
	}
	r.Text(os.Stdout)
	if err := r.write(o); err != nil {
		return err
	}
	if r.Failed() {
		return errFound
	}
	return nil
}

// played is the report of a run that was played here.
type played struct{ *report.Report }

func (r played) write(o options) error {
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
	return nil
}

// play runs a campaign in a folder of its own, which stays when something was found or nothing could be judged.
func play(ctx context.Context, o options, log io.Writer) (_ played, err error) {
	p, err := project.Find()
	if err != nil {
		return played{}, err
	}
	kinds, err := o.kinds()
	if err != nil {
		return played{}, err
	}
	dir, err := os.MkdirTemp("", "storefront-faults-")
	if err != nil {
		return played{}, err
	}
	if err := os.Chmod(dir, 0o755); err != nil { // PostgreSQL's user passes through it
		return played{}, err
	}
	begun := time.Now()
	say := func(format string, args ...any) {
		fmt.Fprintf(log, "%7.1fs  %s\n", time.Since(begun).Seconds(), fmt.Sprintf(format, args...))
	}
	say("seed %d, folder %s", o.seed, dir)
	cfg := campaign.Config{Project: p, Bin: o.bin, Dir: dir, Length: time.Duration(o.minutes * float64(time.Minute)), Signals: o.signals, Seed: o.seed, Kinds: kinds,
		Redis: o.redis, Hasty: o.hasty, Rate: o.rate, Say: say}
	if cfg.Bin == "" {
		if cfg.Bin, err = build(ctx, p, filepath.Join(dir, "bin"), "edge", "control", "engine-relay", "deploy/demoengine", "deploy/fakeprovider"); err != nil {
			return played{}, err
		}
	}
	if slices.Contains(kinds, "N13") && !o.hasty {
		if cfg.ChaosBin, err = build(ctx, p, filepath.Join(dir, "chaos"), "-tags=chaos", "edge"); err != nil {
			return played{}, err
		}
	}
	r, err := campaign.Run(ctx, cfg)
	if err != nil {
		return played{}, fmt.Errorf("%w (the folder is %s, the command %s)", err, dir, o.reproducer())
	}
	r.Reproducer, r.Commit = o.reproducer(), commit(ctx, p)
	if r.Failed() {
		r.Dir = dir
		return played{r}, nil
	}
	if o.keep {
		say("kept: %s", dir)
		return played{r}, nil
	}
	return played{r}, os.RemoveAll(dir)
}

// build compiles programs of the project into a folder.
func build(ctx context.Context, p project.Project, dir string, programs ...string) (string, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	args := []string{"build"}
	for _, name := range programs {
		if strings.HasPrefix(name, "-") {
			args = append(args, name)
		}
	}
	args = append(args, "-o", dir+"/")
	for _, name := range programs {
		if !strings.HasPrefix(name, "-") {
			args = append(args, "storefront.internal/"+name)
		}
	}
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = p.Root
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return dir, nil
}

// commit is what was tested, as far as version control knows.
func commit(ctx context.Context, p project.Project) string {
	cmd := exec.CommandContext(ctx, "git", "rev-parse", "--short=12", "HEAD")
	cmd.Dir = p.Root
	out, err := cmd.Output()
	if err != nil {
		return "" // a checkout without version control
	}
	return strings.TrimSpace(string(out))
}
