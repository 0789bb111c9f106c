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

// MaxBatch is how many observations a request may carry.
const MaxBatch = 500

// Config says where to deliver, and how patiently. Only the first three are needed.
type Config struct {
	BaseURL      string // of the internal surface, without a trailing slash
	ConnectionID string
	Token        string // born with the connection, good for it alone

	Client   *http.Client  // default: a client with a timeout of 30 s
	Batch    int           // observations per request, at most MaxBatch; default 200
	Attempts int           // of one request; default 8
	Backoff  time.Duration // before the second attempt, doubled for each further one; default 250 ms
	Log      func(format string, args ...any)
}

// Connector delivers to one connection. It may be used by several goroutines, but what two of them say of one entity counts by
// revision and not by who was first.
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

// Deliver sends the observations in order, in batches, and answers one result per observation. Categories go best before the
// products that hang from them, though any order ends in the same state.
//
// An error means that the delivery stopped: the results so far are answered with it, and delivering everything again is safe.
func (c *Connector) Deliver(ctx context.Context, all []Observation) ([]Result, error) {
	results := make([]Result, 0, len(all))
	size := c.Batch
	for len(all) > 0 {
		batch := all[:min(size, len(all))]
		got, err := c.deliver(ctx, batch)
		if errors.Is(err, errTooLarge) && len(batch) > 1 {
			size = len(batch) / 2 // the limits are of elements and of bytes: go on with smaller batches
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

// deliver sends one batch until it is answered, the answer is final, or patience ends. Every attempt sends the same bytes.
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
