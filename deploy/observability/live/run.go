// Package live checks dashboards and alerts on a running deployment. A real Prometheus scrapes the services
// under load; every query of every dashboard and every rule is evaluated, and three alerts are provoked. Only
// the time for which an alert's condition must hold is shortened.
package live

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"storefront.internal/deploy/faults/history"
	"storefront.internal/deploy/faults/load"
	"storefront.internal/deploy/faults/recording"
	"storefront.internal/deploy/faults/scenario"
	"storefront.internal/deploy/faults/topology"
	"storefront.internal/deploy/local/project"
	"storefront.internal/shared/backoff"
)

// Config of a check.
type Config struct {
	Project project.Project
	Load    time.Duration // time of load before the dashboards are checked
	Out     io.Writer
}

// Run starts everything, makes all checks, and returns an error that lists what failed.
func Run(ctx context.Context, cfg Config) (err error) {
	dir, err := os.MkdirTemp("", "storefront-observe-*")
	if err != nil {
		return err
	}
	if err := os.Chmod(dir, 0o755); err != nil { // the user of PostgreSQL passes through it
		return err
	}
	logf := func(format string, args ...any) { fmt.Fprintf(cfg.Out, format+"\n", args...) }
	logf("logs and data: %s", dir)
	x, err := topology.Start(ctx, topology.Config{Project: cfg.Project,
		Bin: filepath.Join(cfg.Project.Root, "bin"), Dir: dir, Logf: logf})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, x.Close()) }()
	env, err := scenario.New(ctx, x, &scenario.Merchant{}, nil)
	if err != nil {
		return err
	}
	prom, err := startPrometheus(ctx, cfg.Project.Root, dir, x)
	if err != nil {
		return err
	}
	defer prom.stop()

	l := newLoad(x, logf)
	if err := l.Open(ctx); err != nil {
		return err
	}
	l.Run(ctx)
	_ = backoff.Sleep(ctx, cfg.Load)
	sent, answered := l.Sent()
	logf("load: %d signals sent, %d answered", sent, answered)
	faults := checkDashboards(ctx, prom, cfg.Project.Root, logf)
	faults = append(faults, checkRules(ctx, prom, logf)...)
	p := &provoker{Env: env, prom: prom, logf: logf}
	// the last one needs the load
	provocations := []func(context.Context) error{p.rejectCredential, p.deadLetter, p.growLag}
	for _, provoke := range provocations {
		if err := provoke(ctx); err != nil {
			logf("FAILED %v", err)
			faults = append(faults, err.Error())
		}
	}
	l.Stop(time.Minute)
	if len(faults) > 0 {
		return fmt.Errorf("%d checks failed:\n  %s", len(faults), strings.Join(faults, "\n  "))
	}
	return os.RemoveAll(dir)
}

// newLoad makes a load whose history is not kept.
func newLoad(x *topology.Topology, logf func(string, ...any)) *load.Load {
	s := x.Settings
	cfg := load.Config{
		Client: recording.Client{Recorder: history.NewRecorder(io.Discard),
			Control:        scenario.Endpoint(x.Control),
			ConnectorToken: s.ConnectorToken, BackendToken: s.BackendToken, AppSecret: s.AppSecret},
		API: x.API(), ProviderURL: x.Provider.URL, AppID: s.AppID, ShopID: topology.ShopID,
		Products: topology.Products,
		Seed:     1, Rate: 400, Clients: 48, Connections: 2, Logf: logf,
	}
	for _, e := range x.Edges {
		cfg.Edges = append(cfg.Edges, scenario.Endpoint(e))
	}
	return load.New(cfg)
}

// checkDashboards runs every query of every panel over the time of the load.
func checkDashboards(ctx context.Context, p *prometheus, root string,
	logf func(string, ...any)) (faults []string) {
	all, err := Dashboards(root)
	if err != nil {
		return []string{err.Error()}
	}
	for _, d := range all {
		queries, empty := 0, 0
		for _, panel := range d.Panels {
			for _, q := range panel.Targets {
				queries++
				expr := strings.NewReplacer("$cluster", ".*", "$namespace", ".*", "$release", ".*",
					"$pod", ".*", "$__rate_interval", "30s").Replace(q.Expr)
				n, err := p.points(ctx, expr)
				switch {
				case err != nil:
					faults = append(faults, fmt.Sprintf("%s: %s: %v: %s", d.File, panel.Title, err, expr))
				case n == 0 && !panel.MayBeEmpty():
					faults = append(faults, fmt.Sprintf("%s: %s has no data: %s", d.File, panel.Title, expr))
				case n == 0:
					empty++
				}
			}
		}
		logf("%s: %d queries, %d of them without data, which is normal for their panels", d.File, queries,
			empty)
	}
	return faults
}

// checkRules checks that every rule was evaluated without an error, and prints which alerts fire.
func checkRules(ctx context.Context, p *prometheus, logf func(string, ...any)) (faults []string) {
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
	logf("rules: %d evaluated, %d with errors; firing after 4 s: %v", len(all), len(faults), firing)
	return faults
}
