// Package scenario is the environment of directed runs: a deployment on which some programs may be replaced
// by changed ones, a connection of the scenario's own, the history, and the check at the end. The scenarios
// themselves are in packages mutants and sweep.
package scenario

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"storefront.internal/deploy/faults/check"
	"storefront.internal/deploy/faults/collect"
	"storefront.internal/deploy/faults/history"
	"storefront.internal/deploy/faults/recording"
	"storefront.internal/deploy/faults/topology"
	"storefront.internal/deploy/stack"
	"storefront.internal/deploy/stack/client"
	"storefront.internal/deploy/stack/poll"
)

// The programs under test.
const (
	Edge    = "edge"
	Relay   = "engine-relay"
	Control = "control"
)

// Env is the environment of one scenario.
type Env struct {
	*topology.Topology
	Connection *Connection
	Merchant   *Merchant
	Recorder   *history.Recorder
	Options    check.Options

	history *bytes.Buffer
	bins    map[string]string // folder of the changed binary by program
}

// New creates a connection for a scenario. Directed runs have no faults of Redis unless the scenario makes
// some, so no id may be accepted twice.
func New(ctx context.Context, x *topology.Topology, m *Merchant, bins map[string]string) (*Env, error) {
	s := &Env{Topology: x, history: &bytes.Buffer{}, bins: bins, Merchant: m}
	s.Recorder = history.NewRecorder(s.history)
	// only the campaign checks the time of the drain
	s.Options = check.Options{DrainLimit: time.Hour, Start: s.Recorder.Start(), Partial: true}
	conn, err := pgx.Connect(ctx, x.Settings.Database)
	if err != nil {
		return nil, err
	}
	err = conn.QueryRow(ctx,
		`SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()`,
	).Scan(&s.Options.Deadlocks)
	if err = errors.Join(err, conn.Close(ctx)); err != nil {
		return nil, err
	}
	s.Connection, err = s.newConnection(ctx)
	return s, err
}

// Client makes recorded calls.
func (s *Env) Client() recording.Client {
	return recording.Client{
		Recorder: s.Recorder, HTTP: recording.NewHTTP(), Control: Endpoint(s.Control),
		ConnectorToken: s.Settings.ConnectorToken,
		BackendToken:   s.Settings.BackendToken, AppSecret: s.Settings.AppSecret,
		Timeout: 45 * time.Second, // longer than a process is paused
	}
}

// Endpoint returns a process as clients know it.
func Endpoint(p *stack.Process) recording.Endpoint {
	return recording.Endpoint{Name: p.Name, URL: p.URL}
}

// Edge returns edge-1 or edge-2.
func (s *Env) Edge(n int) recording.Endpoint { return Endpoint(s.Edges[n-1]) }

// Program returns the program of a process.
func Program(p *stack.Process) string {
	switch {
	case strings.HasPrefix(p.Name, "edge"):
		return Edge
	case strings.HasPrefix(p.Name, "relay"):
		return Relay
	}
	return Control
}

// Restart restarts a process with additional variables, which its next start does not have. It stops the
// process in order: the job of a killed control is given to another worker only after a minute.
func (s *Env) Restart(ctx context.Context, p *stack.Process, env ...string) error {
	p.SetBinaries(s.bins[Program(p)])
	p.SetEnv(env...)
	if err := errors.Join(p.Stop(ctx), p.Start(ctx)); err != nil {
		return err
	}
	p.SetEnv()
	return p.Ready(ctx)
}

// ArmFailpoint restarts a process so that it dies ("kill") or stops ("stop") at a failpoint.
func (s *Env) ArmFailpoint(ctx context.Context, p *stack.Process, point, mode string) error {
	return s.Restart(ctx, p, "CRASHPOINT="+point+":1:"+mode)
}

// Fault records a fault that lasts while do runs.
func (s *Env) Fault(kind, detail string, do func() error) error {
	f := history.Fault{At: s.Recorder.Now(), Kind: kind, Detail: detail}
	err := do()
	f.Until = s.Recorder.Now()
	s.Recorder.RecordFault(f)
	return err
}

// Until waits for a condition.
func Until(ctx context.Context, what string, holds func() (bool, error)) error {
	return poll.Until(ctx, what, func() error {
		ok, err := holds()
		if err != nil {
			return poll.Permanent(err)
		}
		if !ok {
			return errors.New("not yet")
		}
		return nil
	})
}

// SetEngineBehaviour sets how the engine answers interactions; nil is its usual behaviour.
func (s *Env) SetEngineBehaviour(ctx context.Context, interactions map[string]any) error {
	body := map[string]any{}
	if interactions != nil {
		body["interactions"] = interactions
	}
	q := client.Request{Method: http.MethodPost, URL: s.Engine.URL + "/debug/behaviour", Body: body}
	return client.Call(ctx, nil, q, nil)
}

// Exec runs a statement as superuser.
func (s *Env) Exec(ctx context.Context, statement string) error {
	return stack.Exec(ctx, s.Settings.Database, statement)
}

// Count reads a number from the database as superuser. The first parameter is the scenario's connection.
func (s *Env) Count(ctx context.Context, query string) (n int, err error) {
	conn, err := pgx.Connect(ctx, s.Settings.Database)
	if err != nil {
		return 0, err
	}
	err = conn.QueryRow(ctx, query, s.Connection.ID).Scan(&n)
	return n, errors.Join(err, conn.Close(ctx))
}

// Concurrently calls do n times at once.
func Concurrently(n int, do func(i int) error) error {
	errs := make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { errs[i] = do(i) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// WaitIdle waits until the deployment has nothing to do.
func (s *Env) WaitIdle(ctx context.Context) error {
	_, err := collect.WaitIdle(ctx, s.targets())
	return err
}

const idleTimeout = 40 * time.Second

// Check waits until the deployment is idle, or for the timeout, and returns the violated invariants.
func (s *Env) Check(ctx context.Context) ([]check.Finding, error) {
	if err := s.Recorder.Flush(); err != nil {
		return nil, err
	}
	h, err := history.Read(bytes.NewReader(s.history.Bytes()))
	if err != nil {
		return nil, err
	}
	if err := s.Ready(ctx); err != nil {
		return nil, err
	}
	idle, cancel := context.WithTimeout(ctx, idleTimeout)
	defer cancel()
	drain, notIdle := collect.WaitIdle(idle, s.targets())
	state, err := collect.Read(ctx, s.targets())
	if err != nil {
		return nil, err
	}
	state.Drain = drain
	findings, _ := check.Run(h, state, s.Options)
	if len(findings) == 0 && notIdle != nil {
		return nil, notIdle
	}
	return findings, nil
}

// targets leaves out the metrics, which include the connections of other scenarios.
func (s *Env) targets() collect.Targets {
	t := collect.TargetsOf(s.Topology)
	t.Admin = nil
	if s.Merchant.Connection == "" {
		t.ProviderURL = ""
	}
	return t
}

// AllPrograms returns the programs of a deployment.
func AllPrograms() []string {
	return []string{Edge, Relay, Control, "deploy/demoengine", "deploy/fakeprovider"}
}
