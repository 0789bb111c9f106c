package live

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"storefront.internal/deploy/observability/dashboards"
)

// Config says where the checkout is, and how long the load runs before the dashboards are looked at.
type Config struct {
	Root     string
	PortBase string
	Load     time.Duration
	Out      io.Writer
}

// Run brings everything up, looks at all of it, provokes three alerts, and returns an error when anything is not as it should be.
func Run(ctx context.Context, cfg Config) error {
	dir, err := os.MkdirTemp("", "storefront-observe-*")
	if err != nil {
		return err
	}
	say := func(format string, args ...any) { fmt.Fprintf(cfg.Out, format+"\n", args...) }
	say("logs and data: %s", dir)
	stack, e, err := startStack(ctx, cfg.Root, dir, cfg.PortBase)
	if err != nil {
		return err
	}
	defer stack.stop()
	prom, err := startPrometheus(ctx, dir, e)
	if err != nil {
		return err
	}
	defer prom.stop()

	c := newClient(e)
	loading, stop := context.WithTimeout(ctx, cfg.Load)
	failed, calls := c.load(loading, 4)
	stop()
	say("load: %d calls in %s, %d failed", calls, cfg.Load, failed)
	faults := lookAtDashboards(ctx, prom, say)
	faults = append(faults, lookAtRules(ctx, prom, say)...)
	x := &provoker{client: c, prom: prom, env: e, say: say}
	for _, provoke := range []func(context.Context) error{x.blocked, x.dead, x.lag} {
		if err := provoke(ctx); err != nil {
			say("FAILED %v", err)
			faults = append(faults, err.Error())
		}
	}
	if len(faults) > 0 {
		return fmt.Errorf("%d things are not as they should be:\n  %s", len(faults), strings.Join(faults, "\n  "))
	}
	return os.RemoveAll(dir)
}

// lookAtDashboards runs every query of every panel over the time of the load.
func lookAtDashboards(ctx context.Context, p *prometheus, say func(string, ...any)) (faults []string) {
	files := dashboards.All()
	names := make([]string, 0, len(files))
	for name := range files {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		queries, empty := 0, 0
		for _, panel := range files[name].Panels() {
			for _, q := range panel.Queries {
				queries++
				expr := strings.NewReplacer("$namespace", ".*", "$__rate_interval", "30s").Replace(q.Expand())
				n, err := p.points(ctx, expr)
				switch {
				case err != nil:
					faults = append(faults, fmt.Sprintf("%s: %s: %v: %s", name, panel.Title, err, expr))
				case n == 0 && panel.Empty == "":
					faults = append(faults, fmt.Sprintf("%s: %s has no data: %s", name, panel.Title, expr))
				case n == 0:
					empty++
					say("  %s: %q is empty: %s", name, panel.Title, panel.Empty)
				}
			}
		}
		say("%s: %d queries, %d legally empty", name, queries, empty)
	}
	return faults
}

// lookAtRules demands that every rule was evaluated without an error, and tells what fires.
func lookAtRules(ctx context.Context, p *prometheus, say func(string, ...any)) (faults []string) {
	all, err := p.rules(ctx)
	if err != nil {
		return []string{err.Error()}
	}
	firing := []string{}
	for _, r := range all {
		if r.Health != "ok" || r.LastEvaluation.IsZero() {
			faults = append(faults, fmt.Sprintf("rule %s: %s %s", r.Name, r.Health, r.LastError))
		}
		if r.State == "firing" && !slices.Contains(firing, r.Name) {
			firing = append(firing, r.Name)
		}
	}
	say("rules: %d evaluated, %d faulty; firing with holding times cut to 4 s: %v", len(all), len(faults), firing)
	return faults
}
