// Package stage is where a directed scenario plays: a running deployment on which some programs may be others than the ordinary
// ones, a shop of the scenario's own, the record of what happens, and its judgement at rest. It knows no scenario.
package stage

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"storefront.internal/deploy/faults/check"
	"storefront.internal/deploy/faults/collect"
	"storefront.internal/deploy/faults/direct"
	"storefront.internal/deploy/faults/history"
	"storefront.internal/deploy/faults/nemesis"
	"storefront.internal/deploy/faults/topology"
	"storefront.internal/shared/stream"
)

// The programs under test.
const (
	Edge    = "edge"
	Relay   = "engine-relay"
	Control = "control"
)

// Stage is one scenario's.
type Stage struct {
	*topology.Topology
	Shop     *direct.Shop
	Recorder *history.Recorder
	Opt      check.Options
	Merchant *Merchant

	record *bytes.Buffer
	bins   map[string]string // folder of the changed binary, by program
}

// New opens a shop. Redis is never at fault in a directed run, so no id may be accepted twice.
func New(ctx context.Context, x *topology.Topology, m *Merchant, bins map[string]string) (*Stage, error) {
	s := &Stage{Topology: x, record: &bytes.Buffer{}, bins: bins, Merchant: m}
	s.Recorder = history.NewRecorder(s.record)
	s.Opt = check.Options{DrainLimit: time.Hour, Start: s.Recorder.Start()} // how fast it drains is the campaign's matter
	var err error
	if s.Opt.Deadlocks, err = deadlocks(ctx, x.DatabaseURL()); err != nil {
		return nil, err
	}
	s.Shop, err = direct.Open(ctx, x.API(), s.Recorder)
	return s, err
}

func deadlocks(ctx context.Context, url string) (n int64, err error) {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return 0, err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	return n, conn.QueryRow(ctx, `SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()`).Scan(&n)
}

// PlaceOf is a service as clients know it.
func PlaceOf(s *topology.Service) direct.Place { return direct.Place{Name: s.Name, URL: s.URL} }

// Edge is the n-th edge, from 1.
func (s *Stage) Edge(n int) direct.Place { return PlaceOf(s.Edges[n-1]) }

// Program is what a service runs.
func Program(s *topology.Service) string {
	switch {
	case strings.HasPrefix(s.Name, "edge"):
		return Edge
	case strings.HasPrefix(s.Name, "relay"):
		return Relay
	}
	return Control
}

// Restart lets a service begin anew with further variables, which the start after the next one does not have.
func (s *Stage) Restart(ctx context.Context, service *topology.Service, extra ...string) error {
	bin := s.bins[Program(service)]
	service.Alter(bin, extra...)
	// In order: a job that a killed control was at is given to another one after a minute only.
	if err := service.Stop(ctx, syscall.SIGTERM); err != nil {
		return err
	}
	if err := service.Start(ctx); err != nil {
		return err
	}
	service.Alter(bin)
	return service.Ready(ctx)
}

// Arm lets a service die or stop at a crash point.
func (s *Stage) Arm(ctx context.Context, service *topology.Service, point, mode string) error {
	return s.Restart(ctx, service, "CRASHPOINT="+point+":1:"+mode)
}

// Fault writes a fault down that lasted while do ran.
func (s *Stage) Fault(kind, detail string, do func() error) error {
	f := history.Fault{At: s.Recorder.Now(), Kind: kind, Detail: detail}
	err := do()
	f.Until = s.Recorder.Now()
	s.Recorder.Fault(f)
	return err
}

// Until waits for a condition.
func Until(ctx context.Context, what string, holds func() (bool, error)) error {
	for {
		ok, err := holds()
		if err != nil || ok {
			return err
		}
		if err := topology.Sleep(ctx, 50*time.Millisecond); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
	}
}

// Behave sets how the engine answers interactions.
func (s *Stage) Behave(ctx context.Context, interactions map[string]any) error {
	body := map[string]any{}
	if interactions != nil {
		body["interactions"] = interactions
	}
	return Post(ctx, http.MethodPost, s.Engine.URL+"/debug/behaviour", body)
}

// Post makes a call of a debug route.
func Post(ctx context.Context, method, url string, body any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(text))
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode >= 300 {
		return fmt.Errorf("%s: %s", url, answer.Status)
	}
	return nil
}

// Exec runs a statement as the superuser.
func (s *Stage) Exec(ctx context.Context, statement string) error {
	conn, err := pgx.Connect(ctx, s.DatabaseURL())
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, statement)
	return errors.Join(err, conn.Close(ctx))
}

// Together runs the same n times at once.
func Together(n int, do func(i int) error) error {
	errs := make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { errs[i] = do(i) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// Rest waits until nothing is under way, so that the next thing that happens is the scenario's.
func (s *Stage) Rest(ctx context.Context) error {
	_, err := collect.Quiet(ctx, s.targets())
	return err
}

// quietWithin is how long a deployment may take to come to rest; one that does not is judged as it is.
const quietWithin = 40 * time.Second

// Judge waits for rest, reads everything and has it judged.
func (s *Stage) Judge(ctx context.Context) ([]check.Finding, error) {
	if err := s.Recorder.Flush(); err != nil {
		return nil, err
	}
	events, faults, err := history.Read(bytes.NewReader(s.record.Bytes()))
	if err != nil {
		return nil, err
	}
	if err := s.Ready(ctx); err != nil {
		return nil, err
	}
	targets := s.targets()
	rest, cancel := context.WithTimeout(ctx, quietWithin)
	defer cancel()
	drain, unquiet := collect.Quiet(rest, targets)
	state, err := collect.Read(ctx, targets)
	if err != nil {
		return nil, err
	}
	state.Drain = drain
	findings, _ := check.Run(events, faults, state, s.Opt)
	if len(findings) == 0 && unquiet != nil {
		return nil, unquiet
	}
	return findings, nil
}

// targets are all but the metrics: other scenarios' connections are in them.
func (s *Stage) targets() collect.Targets {
	t := collect.Targets{
		DatabaseURL: s.DatabaseURL(), Brokers: []string{s.Brokers()}, Topic: stream.TopicSignals, Group: nemesis.RelayGroup,
		Topics: []string{stream.TopicSignals, stream.TopicDecisions}, EngineURL: s.Engine.URL, ControlURL: s.Control.URL,
		BackendToken: s.Settings().BackendToken, RedisAddr: s.RedisAddr(),
	}
	if s.Merchant.Connection != "" {
		t.ProviderURL = s.Provider.URL
	}
	return t
}
