package mutants

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"storefront.internal/deploy/faults/check"
	"storefront.internal/deploy/faults/stage"
	"storefront.internal/deploy/faults/topology"
	"storefront.internal/deploy/local/project"
)

// Config of a self-test.
type Config struct {
	Project project.Project
	Dir     string   // for data, logs and binaries; everybody may pass through it
	Only    []string // names of mutants or scenarios; all when empty
	Say     func(format string, args ...any)
}

// Outcome is what one scenario came to, with a planted bug or (Mutant "") without.
type Outcome struct {
	Mutant, Says, Scenario string
	Wants                  []string
	Findings               []check.Finding
	Err                    error // it could not be played
	Took                   time.Duration
}

// By is the wanted invariant that caught the mutant, empty when it survived.
func (o Outcome) By() string {
	for _, f := range o.Findings {
		if slices.Contains(o.Wants, f.Invariant) {
			return f.Invariant
		}
	}
	return ""
}

// Right tells whether the outcome is as it should be: a mutant is caught, and without one nothing is found.
func (o Outcome) Right() bool {
	if o.Mutant == "" {
		return o.Err == nil && len(o.Findings) == 0
	}
	return o.By() != ""
}

// longest is how long one scenario may take.
const longest = 2 * time.Minute

// Run plays every scenario without a bug, and then each mutant's with it.
func Run(ctx context.Context, cfg Config) (all []Outcome, err error) {
	ordinary := filepath.Join(cfg.Dir, "bin")
	if err := stage.Compile(ctx, cfg.Project, ordinary, "", stage.Edge, stage.Relay, stage.Control, "deploy/demoengine", "deploy/fakeprovider"); err != nil {
		return nil, err
	}
	x, err := topology.Start(ctx, topology.Config{Project: cfg.Project, Bin: ordinary, Dir: cfg.Dir, Say: cfg.Say})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, x.Close()) }()
	shop := &stage.Merchant{}
	var played []string
	for _, m := range List() {
		if cfg.wants(m) && !slices.Contains(played, m.Scenario) {
			played = append(played, m.Scenario)
			all = append(all, cfg.play(ctx, x, shop, Outcome{Scenario: m.Scenario}, nil))
		}
	}
	for _, m := range List() {
		if !cfg.wants(m) || ctx.Err() != nil {
			continue
		}
		o := Outcome{Mutant: m.Name, Says: m.Says, Scenario: m.Scenario, Wants: m.Wants}
		bins, err := cfg.breed(ctx, m)
		if err != nil {
			o.Err = err
			all = append(all, o)
			continue
		}
		all = append(all, cfg.play(ctx, x, shop, o, bins))
	}
	return all, ctx.Err()
}

func (c Config) wants(m Mutant) bool {
	return len(c.Only) == 0 || slices.Contains(c.Only, m.Name) || slices.Contains(c.Only, m.Scenario)
}

// breed builds a mutant's programs.
func (c Config) breed(ctx context.Context, m Mutant) (map[string]string, error) {
	dir := filepath.Join(c.Dir, "mutants", m.Name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	list, err := overlay(c.Project.Root, dir, m)
	if err != nil {
		return nil, err
	}
	bins := map[string]string{}
	for _, p := range m.Programs {
		bins[p] = dir
	}
	return bins, stage.Compile(ctx, c.Project, dir, list, m.Programs...)
}

// play runs one scenario on changed programs and puts the ordinary ones back.
func (c Config) play(ctx context.Context, x *topology.Topology, m *stage.Merchant, o Outcome, bins map[string]string) Outcome {
	begun := time.Now()
	within, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	o.Findings, o.Err = staged(within, x, m, o.Scenario, bins)
	o.Took = time.Since(begun)
	c.Say("%s", o.line())
	ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), longest)
	defer cancel()
	for _, s := range x.Services() {
		_ = s.Continue() // it may be down
		if bins[stage.Program(s)] == "" && o.Err == nil {
			continue
		}
		s.Alter("")
		if err := errors.Join(s.Stop(ctx, syscall.SIGTERM), s.Start(ctx), s.Ready(ctx)); err != nil {
			o.Err = errors.Join(o.Err, err)
		}
	}
	return o
}

func staged(ctx context.Context, x *topology.Topology, m *stage.Merchant, name string, bins map[string]string) ([]check.Finding, error) {
	s, err := stage.New(ctx, x, m, bins)
	if err != nil {
		return nil, err
	}
	for _, service := range x.Services() {
		if bins[stage.Program(service)] != "" {
			if err := s.Restart(ctx, service); err != nil {
				return nil, err
			}
		}
	}
	played := scenarios()[name](ctx, s)
	findings, err := s.Judge(ctx)
	if len(findings) > 0 {
		return findings, nil // a scenario may fail for what it has found
	}
	return nil, errors.Join(played, err)
}

// line is the outcome for a person.
func (o Outcome) line() string {
	seconds := o.Took.Seconds()
	switch {
	case o.Mutant == "" && o.Right():
		return fmt.Sprintf("clean    %-28s %5.0f s", o.Scenario, seconds)
	case o.Mutant == "":
		return fmt.Sprintf("NOT CLEAN %-27s %5.0f s  %v %v", o.Scenario, seconds, o.Findings, o.Err)
	case o.Right():
		return fmt.Sprintf("caught   %-28s %5.0f s  by %s in %q", o.Mutant, seconds, o.By(), o.Scenario)
	default:
		return fmt.Sprintf("SURVIVED %-28s %5.0f s  in %q: %v %v", o.Mutant, seconds, o.Scenario, o.Findings, o.Err)
	}
}

// Table is all outcomes for a person, and whether all of them are right.
func Table(all []Outcome) (text string, right bool) {
	right = len(all) > 0
	var b strings.Builder
	for _, o := range all {
		right = right && o.Right()
		fmt.Fprintln(&b, o.line())
	}
	return b.String(), right
}
