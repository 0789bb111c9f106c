package mutants

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"storefront.internal/deploy/faults/check"
	"storefront.internal/deploy/faults/scenario"
	"storefront.internal/deploy/faults/topology"
	"storefront.internal/deploy/local/project"
	"storefront.internal/deploy/stack"
)

// Config of a self-test.
type Config struct {
	Project project.Project
	Dir     string   // of data, logs and binaries; every user may pass through it
	Only    []string // names of mutants or scenarios; all when empty
	Logf    func(format string, args ...any)
}

// Outcome is the result of a scenario with a mutant or, if Mutant is "", without one.
type Outcome struct {
	Mutant, Description, Scenario string
	Detects                       []string
	Findings                      []check.Finding
	Err                           error // it could not be run
	Took                          time.Duration
}

// DetectedBy returns the invariant that detected the mutant, or "".
func (o Outcome) DetectedBy() string {
	for _, f := range o.Findings {
		if slices.Contains(o.Detects, f.Invariant) {
			return f.Invariant
		}
	}
	return ""
}

// OK reports whether the mutant was detected or, without a mutant, nothing was found.
func (o Outcome) OK() bool {
	if o.Mutant == "" {
		return o.Err == nil && len(o.Findings) == 0
	}
	return o.DetectedBy() != ""
}

const scenarioTimeout = 3 * time.Minute

// Run runs all scenarios without a mutant, and then the scenario of each mutant. Scenarios that need more
// brokers than the others have a deployment of their own.
func Run(ctx context.Context, cfg Config) (all []Outcome, err error) {
	unchanged := filepath.Join(cfg.Dir, "bin")
	if err := stack.Build(ctx, cfg.Project, unchanged, []string{"-tags=chaos"},
		scenario.AllPrograms()...); err != nil {
		return nil, err
	}
	for _, n := range []int{1, 3} {
		var selected []Mutant
		for _, m := range List() {
			if cfg.selected(m) && brokers(m.Scenario) == n {
				selected = append(selected, m)
			}
		}
		if len(selected) == 0 {
			continue
		}
		outcomes, err := cfg.runAll(ctx, topology.Config{Project: cfg.Project, Bin: unchanged, Brokers: n,
			Dir: filepath.Join(cfg.Dir, fmt.Sprintf("brokers-%d", n)), Logf: cfg.Logf}, selected)
		all = append(all, outcomes...)
		if err != nil {
			return all, err
		}
	}
	return all, nil
}

// runAll runs the scenarios of mutants on one deployment.
func (c Config) runAll(ctx context.Context, t topology.Config, list []Mutant) (all []Outcome, err error) {
	x, err := topology.Start(ctx, t)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, x.Close()) }()
	shop := &scenario.Merchant{}
	var played []string
	for _, m := range list {
		if !slices.Contains(played, m.Scenario) {
			played = append(played, m.Scenario)
			all = append(all, c.run(ctx, x, shop, Outcome{Scenario: m.Scenario}, nil))
		}
	}
	for _, m := range list {
		if ctx.Err() != nil {
			break
		}
		o := Outcome{Mutant: m.Name, Description: m.Description, Scenario: m.Scenario, Detects: m.Detects}
		bins, err := c.build(ctx, m)
		if err != nil {
			o.Err = err
			all = append(all, o)
			continue
		}
		all = append(all, c.run(ctx, x, shop, o, bins))
	}
	return all, ctx.Err()
}

func (c Config) selected(m Mutant) bool {
	return len(c.Only) == 0 || slices.Contains(c.Only, m.Name) || slices.Contains(c.Only, m.Scenario)
}

// build builds the programs of a mutant.
func (c Config) build(ctx context.Context, m Mutant) (map[string]string, error) {
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
	return bins, stack.Build(ctx, c.Project, dir, []string{"-tags=chaos", "-overlay", list}, m.Programs...)
}

// run runs a scenario with changed programs and restores the usual ones.
func (c Config) run(ctx context.Context, x *topology.Topology, m *scenario.Merchant, o Outcome,
	bins map[string]string) Outcome {
	begun := time.Now()
	within, cancel := context.WithTimeout(ctx, scenarioTimeout)
	defer cancel()
	o.Findings, o.Err = runScenario(within, x, m, o.Scenario, bins)
	o.Took = time.Since(begun)
	c.Logf("%s", o.line())
	ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), scenarioTimeout)
	defer cancel()
	for _, s := range x.Services() {
		_ = s.Resume() // it may not be running
		if bins[scenario.Program(s)] == "" && o.Err == nil {
			continue
		}
		s.SetBinaries("")
		s.SetEnv()
		if err := s.Restart(ctx); err != nil {
			o.Err = errors.Join(o.Err, err)
		}
	}
	return o
}

func runScenario(ctx context.Context, x *topology.Topology, m *scenario.Merchant, name string,
	bins map[string]string) ([]check.Finding, error) {
	s, err := scenario.New(ctx, x, m, bins)
	if err != nil {
		return nil, err
	}
	for _, service := range x.Services() {
		if bins[scenario.Program(service)] != "" {
			if err := s.Restart(ctx, service); err != nil {
				return nil, err
			}
		}
	}
	played := scenarios()[name](ctx, s)
	findings, err := s.Check(ctx)
	if len(findings) > 0 {
		return findings, nil // the scenario may have failed because of the bug
	}
	return nil, errors.Join(played, err)
}

// line describes the outcome.
func (o Outcome) line() string {
	seconds := o.Took.Seconds()
	switch {
	case o.Mutant == "" && o.OK():
		return fmt.Sprintf("clean    %-28s %5.0f s", o.Scenario, seconds)
	case o.Mutant == "":
		return fmt.Sprintf("NOT CLEAN %-27s %5.0f s  %v %v", o.Scenario, seconds, o.Findings, o.Err)
	case o.OK():
		return fmt.Sprintf("detected %-28s %5.0f s  by %s in %q", o.Mutant, seconds, o.DetectedBy(),
			o.Scenario)
	default:
		return fmt.Sprintf("SURVIVED %-28s %5.0f s  in %q: %v %v", o.Mutant, seconds, o.Scenario, o.Findings,
			o.Err)
	}
}

// Table describes all outcomes and reports whether all of them are OK.
func Table(all []Outcome) (text string, right bool) {
	right = len(all) > 0
	var b strings.Builder
	for _, o := range all {
		right = right && o.OK()
		fmt.Fprintln(&b, o.line())
	}
	return b.String(), right
}
