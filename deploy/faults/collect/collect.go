package collect

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"storefront.internal/deploy/local/services"
)

// Targets says where to read. What is empty is not read.
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
	Admin        map[string]string // host:port of each process's operations port, by its name
}

// Read reads everything. It is for a deployment that is quiet: what moves meanwhile would look like a fault.
func Read(ctx context.Context, t Targets) (*State, error) {
	s := &State{Ledger: map[string]int{}, Lag: map[string]int64{}, Metrics: map[string]map[string]float64{}}
	c := collector{Targets: t, state: s, same: map[string]string{}}
	for _, part := range []struct {
		name string
		read func(context.Context) error
		skip bool
	}{
		{"database", c.database, t.DatabaseURL == ""},
		{"topic", c.topic, len(t.Brokers) == 0},
		{"engine", c.engine, t.EngineURL == ""},
		{"queue view", c.queue, t.ControlURL == ""},
		{"redis", c.cache, t.RedisAddr == ""},
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
	state *State
	same  map[string]string // one copy of each text that repeats
}

// one returns the text's one copy: a run of a million signals has few connections, Decisions and items.
func (c *collector) one(text string) string {
	if known, ok := c.same[text]; ok {
		return known
	}
	c.same[text] = text
	return text
}

// queue adds what operation 9 says to the slices.
func (c *collector) queue(ctx context.Context) error {
	view, err := services.Internal{BaseURL: c.ControlURL, BackendToken: c.BackendToken}.Queue(ctx)
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
			c.state.Queue = append(c.state.Queue, Slice{Connection: shown.ConnectionID})
		}
		s := &c.state.Queue[i]
		s.Shown, s.ShownDead, s.ShownDoubtful = int64(shown.Pending), int64(shown.DeadLast24h), int64(shown.UnconfirmedCreations)
	}
	return nil
}

// between is how often Quiet looks.
const between = 250 * time.Millisecond

// Quiet waits until the relays have read the topics to their ends and nothing is left to deliver, and answers how long that
// took. It gives up with the context, and says what was still open: the state is worth reading all the same.
func Quiet(ctx context.Context, t Targets) (time.Duration, error) {
	begun := time.Now()
	last := errors.New("nothing was read yet")
	for {
		if err := t.open(ctx); err == nil {
			return time.Since(begun), nil
		} else if ctx.Err() == nil {
			last = err
		}
		select {
		case <-ctx.Done():
			return time.Since(begun), fmt.Errorf("collect: not quiet: %w", last)
		case <-time.After(between):
		}
	}
}

// unfinished counts what control still owes to Redis, and the fetches and loads that are due; what is due later is upkeep.
const unfinished = `SELECT count(*) FROM control.river_job
	WHERE state IN ('available', 'pending', 'running', 'retryable', 'scheduled')
	AND kind IN ('item_push', 'key_push', 'item_recompose', 'entity_refresh')`

// open returns what is still open.
func (t Targets) open(ctx context.Context) error {
	lag, err := t.lag(ctx)
	if err != nil {
		return err
	}
	for place, n := range lag {
		if n > 0 {
			return fmt.Errorf("%d records of %s are not read", n, place)
		}
	}
	conn, err := pgx.Connect(ctx, t.DatabaseURL)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	var entries, deltas int
	if err := conn.QueryRow(ctx, `SELECT (SELECT count(*) FROM delivery.entries), (SELECT count(*) FROM delivery.deltas)`).Scan(&entries, &deltas); err != nil {
		return err
	}
	if entries+deltas > 0 {
		return fmt.Errorf("%d deliveries wait, %d deltas are not folded", entries, deltas)
	}
	var jobs int
	if err := conn.QueryRow(ctx, unfinished).Scan(&jobs); err != nil {
		return err
	}
	if jobs > 0 {
		return fmt.Errorf("%d jobs of control are not done", jobs)
	}
	return nil
}
