package collect

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"storefront.internal/deploy/faults/topology"
	"storefront.internal/deploy/stack/client"
	"storefront.internal/shared/backoff"
	"storefront.internal/shared/stream"
)

// Targets are the addresses to read from. Nothing is read from an empty one.
type Targets struct {
	DatabaseURL  string // of a role that may read everything
	Brokers      []string
	Topic        string   // of signals
	Group        string   // the relays' consumer group
	Topics       []string // whose lag counts
	EngineURL    string
	ControlURL   string
	BackendToken string
	ProviderURL  string
	RedisAddr    string
	Admin        map[string]string // host:port of the operations port of each process
}

// TargetsOf returns the targets of a deployment.
func TargetsOf(x *topology.Topology) Targets {
	t := Targets{
		DatabaseURL: x.Settings.Database, Brokers: strings.Split(x.Settings.KafkaBrokers, ","),
		Topic: stream.TopicSignals,
		Group: topology.RelayGroup, Topics: []string{stream.TopicSignals,
			stream.TopicDecisions}, EngineURL: x.Engine.URL,
		ControlURL: x.Control.URL, BackendToken: x.Settings.BackendToken, ProviderURL: x.Provider.URL,
		RedisAddr: x.Settings.RedisAddr, Admin: map[string]string{},
	}
	for _, s := range x.Services() {
		t.Admin[s.Name] = s.Admin
	}
	return t
}

// Read reads everything. The deployment must be idle: changes meanwhile would look like violations.
func Read(ctx context.Context, t Targets) (*State, error) {
	s := &State{Ledger: map[string]int{}, Lag: map[string]int64{}, Metrics: map[string]map[string]float64{}}
	c := collector{Targets: t, state: s, interned: map[string]string{}}
	for _, part := range []struct {
		name string
		read func(context.Context) error
		skip bool
	}{
		{"database", c.database, t.DatabaseURL == ""},
		{"topic", c.topic, len(t.Brokers) == 0},
		{"engine", c.engine, t.EngineURL == ""},
		{"queue view", c.queue, t.ControlURL == ""},
		{"redis", c.cachedItems, t.RedisAddr == ""},
		{"provider", c.provider, t.ProviderURL == ""},
		{"metrics", c.metrics, len(t.Admin) == 0},
	} {
		if part.skip {
			continue
		}
		if err := part.read(ctx); err != nil {
			return nil, fmt.Errorf("collect: %s: %w", part.name, err)
		}
	}
	return s, nil
}

// collector fills a state.
type collector struct {
	Targets
	state    *State
	interned map[string]string // one copy of each repeated text
}

// intern returns one copy of equal texts: a million signals have few connections, Decisions and items.
func (c *collector) intern(text string) string {
	if known, ok := c.interned[text]; ok {
		return known
	}
	c.interned[text] = text
	return text
}

// queue adds the queue view to the slices.
func (c *collector) queue(ctx context.Context) error {
	view, err := client.Internal{BaseURL: c.ControlURL, BackendToken: c.BackendToken}.ViewQueue(ctx)
	if err != nil {
		return err
	}
	at := map[string]int{}
	for i, s := range c.state.Queue {
		at[s.Connection] = i
	}
	for _, shown := range view.Connections {
		i, known := at[shown.ConnectionID]
		if !known {
			i = len(c.state.Queue)
			c.state.Queue = append(c.state.Queue, QueueCounts{Connection: shown.ConnectionID})
		}
		s := &c.state.Queue[i]
		s.ViewPending, s.ViewDead, s.ViewUnconfirmed = int64(shown.Pending), int64(shown.DeadLast24h),
			int64(shown.UnconfirmedCreations)
	}
	return nil
}

// WaitIdle waits until the relays have read the topics and nothing is left to deliver, and returns how long
// that took. When the context ends, the error says what is left.
func WaitIdle(ctx context.Context, t Targets) (time.Duration, error) {
	begun := time.Now()
	last := errors.New("nothing was read yet")
	for {
		err := t.checkIdle(ctx)
		if err == nil {
			return time.Since(begun), nil
		}
		if ctx.Err() == nil {
			last = err
		}
		if backoff.Sleep(ctx, 250*time.Millisecond) != nil {
			return time.Since(begun), fmt.Errorf("collect: not idle: %w", last)
		}
	}
}

// selectUnfinishedJobs counts the jobs that change Redis or fetch entities. Other jobs are periodic.
const selectUnfinishedJobs = `SELECT count(*) FROM control.river_job
	WHERE state IN ('available', 'pending', 'running', 'retryable', 'scheduled')
	AND kind IN ('item_push', 'key_push', 'item_recompose', 'entity_refresh')`

// selectPrivacy counts erasures and redactions. A redaction may wait for an operator.
const selectPrivacy = `SELECT (SELECT count(*) FROM relay.erasures WHERE completed_at IS NULL),
	(SELECT count(*) FROM control.privacy_requests WHERE completed_at IS NULL AND kind <> 'data_request'
		AND matches IS NULL)`

// checkIdle returns an error that says what is left to do.
func (t Targets) checkIdle(ctx context.Context) error {
	lag, err := t.lag(ctx)
	if err != nil {
		return err
	}
	for partition, n := range lag {
		if n > 0 {
			return fmt.Errorf("%d records of %s are not read", n, partition)
		}
	}
	conn, err := pgx.Connect(ctx, t.DatabaseURL)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	var entries, deltas int
	if err := conn.QueryRow(ctx,
		`SELECT (SELECT count(*) FROM delivery.entries), (SELECT count(*) FROM delivery.deltas)`,
	).Scan(&entries, &deltas); err != nil {
		return err
	}
	if entries+deltas > 0 {
		return fmt.Errorf("%d deliveries are pending, %d deltas are not compacted", entries, deltas)
	}
	var jobs int
	if err := conn.QueryRow(ctx, selectUnfinishedJobs).Scan(&jobs); err != nil {
		return err
	}
	if jobs > 0 {
		return fmt.Errorf("%d jobs of control are unfinished", jobs)
	}
	var erasures, redactions int
	if err := conn.QueryRow(ctx, selectPrivacy).Scan(&erasures, &redactions); err != nil {
		return err
	}
	if erasures+redactions > 0 {
		return fmt.Errorf("%d erasures and %d redactions are not completed", erasures, redactions)
	}
	return nil
}
