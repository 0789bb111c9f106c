package connector

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"
)

// retryError is a failure that another attempt may not have.
type retryError struct {
	after time.Duration // what Retry-After asks for; 0 when it says nothing
	err   error
}

func (e *retryError) Error() string { return e.err.Error() }
func (e *retryError) Unwrap() error { return e.err }

// errTooLarge means that a smaller batch may be accepted.
var errTooLarge = errors.New("the batch is too large")

// post makes one attempt and returns the results of the batch, one for each position.
func (c *Connector) post(ctx context.Context, body []byte, want int) ([]Result, error) {
	url := c.BaseURL + "/internal/v1/connections/" + c.ConnectionID + "/observations"
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer "+c.Token)
	r.Header.Set("Content-Type", "application/json")
	res, err := c.Client.Do(r)
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, &retryError{err: err} // it is unknown whether the batch arrived; sending it again is safe
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return nil, &retryError{err: err}
	}
	return read(res, text, want)
}

// read returns the results of a response, a retryable error or a final error.
func read(res *http.Response, text []byte, want int) ([]Result, error) {
	if res.StatusCode != http.StatusOK {
		return nil, refusal(res, text)
	}
	var answer struct {
		Results []Result `json:"results"`
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		return nil, &retryError{err: fmt.Errorf("unreadable answer: %w", err)}
	}
	if len(answer.Results) != want {
		return nil, fmt.Errorf("%d results for %d observations", len(answer.Results), want)
	}
	for i, r := range answer.Results {
		if r.Index != i {
			return nil, fmt.Errorf("result %d is of position %d", i, r.Index)
		}
	}
	return answer.Results, nil
}

func refusal(res *http.Response, text []byte) error {
	var problem struct {
		Code   string `json:"code"`
		Detail string `json:"detail"`
	}
	_ = json.Unmarshal(text, &problem) // a proxy's answer may be no JSON
	err := fmt.Errorf("%s %s %s", res.Status, problem.Code, problem.Detail)
	switch status := res.StatusCode; {
	case status == http.StatusRequestEntityTooLarge:
		return fmt.Errorf("%w: %w", errTooLarge, err)
	case status == http.StatusTooManyRequests, status >= 500:
		return &retryError{after: retryAfter(res.Header.Get("Retry-After")), err: err}
	default:
		return err // 400, 401, 404: another attempt would fail too
	}
}

// retryAfter reads both forms of the header: seconds and a date.
func retryAfter(text string) time.Duration {
	if seconds, err := strconv.Atoi(text); err == nil && seconds > 0 {
		return time.Duration(seconds) * time.Second
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(time.Until(at), 0)
	}
	return 0
}

// jitter spreads the retries of connectors that failed at the same time.
func jitter(pause time.Duration) time.Duration { return pause/2 + rand.N(pause/2+1) }

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
