package sweep

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"storefront.internal/deploy/faults/check"
	"storefront.internal/deploy/faults/scenario"
	"storefront.internal/deploy/faults/topology"
	"storefront.internal/deploy/local/project"
	"storefront.internal/deploy/stack"
	"storefront.internal/shared/backoff"
)

// Config of a sweep.
type Config struct {
	Project project.Project
	Dir     string // of data, logs and binaries; every user may pass through it
	Bin     string // folder of binaries with failpoints; "": they are built
	Rounds  []Round
	Logf    func(format string, args ...any)
}

// Outcome is the result of a round. Missed are the cases whose process did not die.
type Outcome struct {
	Round    Round
	Missed   []Case
	Findings []check.Finding
	Err      error
	Took     time.Duration
}

// OK reports whether all processes died and nothing was found.
func (o Outcome) OK() bool { return o.Err == nil && len(o.Findings) == 0 && len(o.Missed) == 0 }

// Line describes the outcome.
func (o Outcome) Line() string {
	var names []string
	for _, c := range o.Round {
		names = append(names, c.Point)
	}
	word := "clean"
	if !o.OK() {
		word = fmt.Sprintf("NOT CLEAN: missed %v, found %v, %v:", o.Missed, o.Findings, o.Err)
	}
	return fmt.Sprintf("%s %s (hit %d, resend %s) %.0f s", word, strings.Join(names, " "), o.Round[0].Hit,
		o.Round[0].Policy, o.Took.Seconds())
}

const roundTimeout = 4 * time.Minute

// Run plays the rounds on one deployment.
func Run(ctx context.Context, cfg Config) (all []Outcome, err error) {
	if cfg.Bin == "" {
		cfg.Bin = filepath.Join(cfg.Dir, "bin")
		if err := stack.Build(ctx, cfg.Project, cfg.Bin, []string{"-tags=chaos"},
			scenario.AllPrograms()...); err != nil {
			return nil, err
		}
	}
	x, err := topology.Start(ctx, topology.Config{Project: cfg.Project, Bin: cfg.Bin, Dir: cfg.Dir,
		Logf: cfg.Logf})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, x.Close()) }()
	merchant := &scenario.Merchant{}
	for _, round := range cfg.Rounds {
		if ctx.Err() != nil {
			break
		}
		begun := time.Now()
		o := Outcome{Round: round}
		func() {
			ctx, cancel := context.WithTimeout(ctx, roundTimeout)
			defer cancel()
			o.Missed, o.Findings, o.Err = runRound(ctx, x, merchant, round)
		}()
		o.Took = time.Since(begun)
		cfg.Logf("%s", o.Line())
		all = append(all, o)
	}
	return all, ctx.Err()
}

// maxPasses is the largest number of passes of the traffic until all processes have died.
const maxPasses = 8

func runRound(ctx context.Context, x *topology.Topology, m *scenario.Merchant, round Round) (missed []Case,
	found []check.Finding, err error) {
	s, err := scenario.New(ctx, x, m, nil)
	if err != nil {
		return nil, nil, err
	}
	if err := m.Open(ctx, s); err != nil {
		return nil, nil, err
	}
	t := &traffic{Env: s, policy: round[0].Policy,
		redis: redis.NewClient(&redis.Options{Addr: x.Settings.RedisAddr})}
	defer func() { _ = t.redis.Close() }()
	err = s.Fault("N1", "killed: "+fmt.Sprint(round), func() error {
		missed, err = t.killAll(ctx, round)
		return err
	})
	if err != nil {
		return missed, nil, err
	}
	if err := s.Ready(ctx); err != nil {
		return missed, nil, err
	}
	if err := t.elapseLeases(ctx); err != nil {
		return missed, nil, err
	}
	if err := t.awaitLastBootstrap(ctx); err != nil {
		return missed, nil, err
	}
	found, err = s.Check(ctx)
	return missed, found, err
}

// killAll arms the failpoints and makes traffic until all processes have died. The second relay is down
// meanwhile, so that the first one does all the work.
func (t *traffic) killAll(ctx context.Context, round Round) (missed []Case, err error) {
	starts := map[string]int{}
	dies := func(program string) bool {
		return slices.ContainsFunc(round, func(c Case) bool { return c.Program == program })
	}
	if dies(scenario.Relay) {
		if err := t.Relays[1].Kill(ctx); err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, t.Relays[1].Start(ctx)) }()
	}
	for _, c := range round {
		v := victim(t.Env, c.Program)
		starts[c.Program] = v.Starts() + 1
		if err := t.Restart(ctx, v, fmt.Sprintf("CRASHPOINT=%s:%d:kill", c.Point, c.Hit)); err != nil {
			// It may have died before it was ready.
			if v.Starts() == starts[c.Program] {
				return nil, err
			}
		}
	}
	alive := func() (left []Case) {
		for _, c := range round {
			if victim(t.Env, c.Program).Starts() <= starts[c.Program] {
				left = append(left, c)
			}
		}
		return left
	}
	for range maxPasses {
		if err := t.makePass(ctx); err != nil {
			return alive(), err
		}
		for range 20 {
			if len(alive()) == 0 {
				return nil, nil
			}
			if err := backoff.Sleep(ctx, 100*time.Millisecond); err != nil {
				return alive(), err
			}
		}
	}
	missed = alive()
	for _, c := range missed { // disarm it
		err = errors.Join(err, t.Restart(ctx, victim(t.Env, c.Program)))
	}
	return missed, err
}

// elapseLeases lets the leases of control expire while it is down.
func (t *traffic) elapseLeases(ctx context.Context) error {
	if err := t.Control.Stop(ctx); err != nil {
		return err
	}
	var err error
	for _, statement := range expireLeases() {
		err = errors.Join(err, t.Exec(ctx, statement))
	}
	return errors.Join(err, t.Control.Start(ctx), t.Control.Ready(ctx))
}
