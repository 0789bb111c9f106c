package connector

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// MaxBatch is the most observations of a request.
const MaxBatch = 500

// Config says where to deliver and how often to retry. Only the first three members are required.
type Config struct {
	BaseURL      string // of control, without a trailing slash
	ConnectionID string
	Token        string // of this connection alone

	Client   *http.Client  // default: a client with a timeout of 30 s
	Batch    int           // observations per request, at most MaxBatch; default 200
	Attempts int           // of one request; default 8
	Backoff  time.Duration // before the second attempt, doubled for each further one; default 250 ms
	Log      func(format string, args ...any)
}

// Connector delivers to one connection. It is safe for concurrent use: of two observations of an entity the
// greater revision wins.
type Connector struct{ Config }

// New makes a connector.
func New(c Config) *Connector {
	if c.Client == nil {
		c.Client = &http.Client{Timeout: 30 * time.Second}
	}
	if c.Batch <= 0 || c.Batch > MaxBatch {
		c.Batch = 200
	}
	if c.Attempts <= 0 {
		c.Attempts = 8
	}
	if c.Backoff <= 0 {
		c.Backoff = 250 * time.Millisecond
	}
	if c.Log == nil {
		c.Log = func(string, ...any) {}
	}
	return &Connector{c}
}

// Deliver sends the observations in order, in batches, and returns one result for each. Categories should
// come before their products, though any order ends in the same state.
//
// After an error the results so far are returned. Delivering everything again is safe.
func (c *Connector) Deliver(ctx context.Context, all []Observation) ([]Result, error) {
	results := make([]Result, 0, len(all))
	size := c.Batch
	for len(all) > 0 {
		batch := all[:min(size, len(all))]
		got, err := c.deliver(ctx, batch)
		if errors.Is(err, errTooLarge) && len(batch) > 1 {
			size = len(batch) / 2 // there is a limit of bytes too: go on with smaller batches
			continue
		}
		if err != nil {
			return results, err
		}
		for _, r := range got {
			r.Index = len(results)
			results = append(results, r)
		}
		all = all[len(batch):]
	}
	return results, nil
}

// deliver sends one batch until it succeeds, fails finally, or the attempts are used up. Every attempt sends
// the same bytes.
func (c *Connector) deliver(ctx context.Context, batch []Observation) ([]Result, error) {
	body, err := encode(batch)
	if err != nil {
		return nil, err
	}
	pause := c.Backoff
	for attempt := 1; ; attempt++ {
		results, err := c.post(ctx, body, len(batch))
		var later *retryError
		if err == nil || !errors.As(err, &later) {
			return results, err
		}
		if attempt == c.Attempts {
			return nil, fmt.Errorf("given up after %d attempts: %w", attempt, err)
		}
		wait := max(later.after, jitter(pause))
		c.Log("attempt %d: %v; again in %s", attempt, err, wait)
		if err := sleep(ctx, wait); err != nil {
			return nil, err
		}
		pause *= 2
	}
}

func encode(batch []Observation) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // shops write & and <
	err := e.Encode(struct {
		Observations []Observation `json:"observations"`
	}{batch})
	return b.Bytes(), err
}
