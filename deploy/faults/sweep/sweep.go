package sweep

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"storefront.internal/deploy/faults/check"
	"storefront.internal/deploy/faults/stage"
	"storefront.internal/deploy/faults/topology"
	"storefront.internal/deploy/local/project"
)

// Config of a sweep.
type Config struct {
	Project project.Project
	Dir     string // for data, logs and binaries; everybody may pass through it
	Bin     string // binaries with crash points; built when empty
	Rounds  []Round
	Say     func(format string, args ...any)
}

// Outcome is what one round came to. Missed are cases whose process did not die: nothing was shown of them.
type Outcome struct {
	Round    Round
	Missed   []Case
	Findings []check.Finding
	Err      error
	Took     time.Duration
}

// Right tells whether every process died where it should and nothing was found.
func (o Outcome) Right() bool { return o.Err == nil && len(o.Findings) == 0 && len(o.Missed) == 0 }

// Line is the outcome for a person.
func (o Outcome) Line() string {
	var names []string
	for _, c := range o.Round {
		names = append(names, c.Point)
	}
	word := "clean"
	if !o.Right() {
		word = fmt.Sprintf("NOT CLEAN: missed %v, found %v, %v:", o.Missed, o.Findings, o.Err)
	}
	return fmt.Sprintf("%s %s (hit %d, resend %s) %.0f s", word, strings.Join(names, " "), o.Round[0].Hit, o.Round[0].Policy, o.Took.Seconds())
}

// within is how long a round may take.
const within = 4 * time.Minute

// Run plays the rounds on one deployment.
func Run(ctx context.Context, cfg Config) (all []Outcome, err error) {
	if cfg.Bin == "" {
		cfg.Bin = filepath.Join(cfg.Dir, "bin")
		if err := stage.Compile(ctx, cfg.Project, cfg.Bin, "", stage.Edge, stage.Relay, stage.Control, "deploy/demoengine", "deploy/fakeprovider"); err != nil {
			return nil, err
		}
	}
	x, err := topology.Start(ctx, topology.Config{Project: cfg.Project, Bin: cfg.Bin, Dir: cfg.Dir, Say: cfg.Say})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, x.Close()) }()
	merchant := &stage.Merchant{}
	for _, round := range cfg.Rounds {
		if ctx.Err() != nil {
			break
		}
		begun := time.Now()
		o := Outcome{Round: round}
		func() {
			ctx, cancel := context.WithTimeout(ctx, within)
			defer cancel()
			o.Missed, o.Findings, o.Err = play(ctx, x, merchant, round)
		}()
		o.Took = time.Since(begun)
		cfg.Say("%s", o.Line())
		all = append(all, o)
	}
	return all, ctx.Err()
}

// turns is how often the traffic runs at most until everybody has died.
const turns = 8

func play(ctx context.Context, x *topology.Topology, m *stage.Merchant, round Round) (missed []Case, found []check.Finding, err error) {
	s, err := stage.New(ctx, x, m, nil)
	if err != nil {
		return nil, nil, err
	}
	if err := m.Open(ctx, s); err != nil {
		return nil, nil, err
	}
	t := &traffic{Stage: s, policy: round[0].Policy, redis: redis.NewClient(&redis.Options{Addr: x.RedisAddr()})}
	defer func() { _ = t.redis.Close() }()
	err = s.Fault("N1", "killed: "+fmt.Sprint(round), func() error {
		missed, err = t.die(ctx, round)
		return err
	})
	if err != nil {
		return missed, nil, err
	}
	if err := s.Ready(ctx); err != nil {
		return missed, nil, err
	}
	if err := t.lapse(ctx); err != nil {
		return missed, nil, err
	}
	if err := t.loaded(ctx); err != nil {
		return missed, nil, err
	}
	found, err = s.Judge(ctx)
	return missed, found, err
}

// die arms the processes and makes traffic until all of them have died. The second relay is down meanwhile, so that the first one
// has all the work.
func (t *traffic) die(ctx context.Context, round Round) (missed []Case, err error) {
	starts := map[string]int{}
	doomed := func(program string) bool {
		return slices.ContainsFunc(round, func(c Case) bool { return c.Program == program })
	}
	if doomed(stage.Relay) {
		if err := t.Relays[1].Kill(ctx); err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, t.Relays[1].Start(ctx)) }()
	}
	for _, c := range round {
		v := victim(t.Stage, c.Program)
		starts[c.Program] = v.Starts() + 1
		if err := t.Restart(ctx, v, fmt.Sprintf("CRASHPOINT=%s:%d:kill", c.Point, c.Hit)); err != nil {
			// One that dies before it is ready has died.
			if v.Starts() == starts[c.Program] {
				return nil, err
			}
		}
	}
	alive := func() (left []Case) {
		for _, c := range round {
			if victim(t.Stage, c.Program).Starts() <= starts[c.Program] {
				left = append(left, c)
			}
		}
		return left
	}
	for range turns {
		if err := t.another(ctx); err != nil {
			return alive(), err
		}
		for range 20 {
			if len(alive()) == 0 {
				return nil, nil
			}
			if err := topology.Sleep(ctx, 100*time.Millisecond); err != nil {
				return alive(), err
			}
		}
	}
	missed = alive()
	for _, c := range missed { // nobody dies in the next round for this one
		err = errors.Join(err, t.Restart(ctx, victim(t.Stage, c.Program)))
	}
	return missed, err
}

// lapse lets a minute pass while control is down.
func (t *traffic) lapse(ctx context.Context) error {
	if err := t.Control.Stop(ctx, syscall.SIGTERM); err != nil {
		return err
	}
	var err error
	for _, statement := range passes() {
		err = errors.Join(err, t.Exec(ctx, statement))
	}
	return errors.Join(err, t.Control.Start(ctx), t.Control.Ready(ctx))
}
