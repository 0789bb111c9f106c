// Package client calls the surfaces of a deployment: the internal one (connectors, the backend, operators),
// the public one (storefronts), and debug routes of the demo engine and the fake provider. Do makes one call
// and returns what came back, whatever that was; the typed methods return an error for every status but a
// 2xx. The package never retries.
package client

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"
)

// Request is one HTTP request.
type Request struct {
	Method, URL string
	Token       string // bearer token; "" sends no Authorization header
	Body        any    // []byte is sent as it is, nil sends no body, anything else is sent as JSON
	Header      http.Header
	Timeout     time.Duration // 0: only the context limits the call
}

// Response is what came back. Err is set when no complete response was read; Status is 0 when there was none
// at all.
type Response struct {
	Status int
	Header http.Header
	Body   []byte
	Err    error
}

// StatusError is a response whose status is not a 2xx.
type StatusError struct {
	Status int
	Body   string
}

func (e *StatusError) Error() string { return fmt.Sprintf("status %d: %s", e.Status, e.Body) }

// Do makes one request. A nil HTTP client is http.DefaultClient.
func Do(ctx context.Context, c *http.Client, q Request) Response {
	if q.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, q.Timeout)
		defer cancel()
	}
	r, err := q.build(ctx)
	if err != nil {
		return Response{Err: err}
	}
	if c == nil {
		c = http.DefaultClient
	}
	res, err := c.Do(r)
	if err != nil {
		return Response{Err: err}
	}
	defer func() { _ = res.Body.Close() }()
	out := Response{Status: res.StatusCode, Header: res.Header}
	out.Body, out.Err = io.ReadAll(res.Body)
	return out
}

func (q Request) build(ctx context.Context) (*http.Request, error) {
	var body io.Reader
	switch b := q.Body.(type) {
	case nil:
	case []byte:
		body = bytes.NewReader(b)
	default:
		text, err := json.Marshal(b)
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(text)
	}
	r, err := http.NewRequestWithContext(ctx, q.Method, q.URL, body)
	if err != nil {
		return nil, err
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	if q.Token != "" {
		r.Header.Set("Authorization", "Bearer "+q.Token)
	}
	for name, values := range q.Header {
		r.Header[name] = values
	}
	return r, nil
}

// OK reports whether the status is a 2xx.
func (r Response) OK() bool { return r.Err == nil && r.Status >= 200 && r.Status < 300 }

// Final reports whether a client gains nothing by sending the request again.
func (r Response) Final() bool {
	return r.Err == nil && r.Status < 500 && r.Status != http.StatusTooManyRequests &&
		r.Status != http.StatusRequestTimeout
}

// Code is the `code` member of a problem body, or "".
func (r Response) Code() string {
	var problem struct {
		Code string `json:"code"`
	}
	_ = json.Unmarshal(r.Body, &problem) // a body that is not a problem has no code
	return problem.Code
}

// Decode reads the body of a 2xx into out, which may be nil. For any other status it returns a *StatusError.
func (r Response) Decode(out any) error {
	switch {
	case r.Err != nil:
		return r.Err
	case !r.OK():
		return &StatusError{r.Status, string(r.Body)}
	case out == nil:
		return nil
	}
	return json.Unmarshal(r.Body, out)
}

func (r Response) String() string {
	if r.Err != nil {
		return r.Err.Error()
	}
	return fmt.Sprintf("%d %.300s", r.Status, r.Body)
}

// Call makes one request and decodes its 2xx response into out; the error names the request.
func Call(ctx context.Context, c *http.Client, q Request, out any) error {
	if err := Do(ctx, c, q).Decode(out); err != nil {
		return fmt.Errorf("%s %s: %w", q.Method, q.URL, err)
	}
	return nil
}
