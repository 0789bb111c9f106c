package load

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"syscall"
	"time"

	"storefront.internal/deploy/faults/history"
)

// wire makes recorded calls.
type wire struct{ client *http.Client }

func newWire() *wire {
	return &wire{&http.Client{Transport: &http.Transport{
		MaxIdleConnsPerHost: 64, IdleConnTimeout: 30 * time.Second, DisableCompression: true,
		DialContext: (&net.Dialer{Timeout: 3 * time.Second}).DialContext,
	}}}
}

// reply is what came back. Without an answer the status is 0.
type reply struct {
	status  int
	code    string
	request string
	etag    string
	body    []byte
	err     error
}

type request struct {
	method, url, token string
	body               any // []byte goes as it is
	header             http.Header
	within             time.Duration
}

func (w *wire) do(ctx context.Context, q request) (a reply) {
	ctx, cancel := context.WithTimeout(ctx, q.within)
	defer cancel()
	var body io.Reader
	switch b := q.body.(type) {
	case nil:
	case []byte:
		body = bytes.NewReader(b)
	default:
		text, err := json.Marshal(b)
		if err != nil {
			return reply{err: err}
		}
		body = bytes.NewReader(text)
	}
	r, err := http.NewRequestWithContext(ctx, q.method, q.url, body)
	if err != nil {
		return reply{err: err}
	}
	for name, values := range q.header {
		r.Header[name] = values
	}
	r.Header.Set("Authorization", "Bearer "+q.token)
	if body != nil && r.Header.Get("Content-Type") == "" {
		r.Header.Set("Content-Type", "application/json")
	}
	res, err := w.client.Do(r)
	if err != nil {
		return reply{err: err}
	}
	defer res.Body.Close()
	a = reply{status: res.StatusCode, request: res.Header.Get("X-Request-Id"), etag: res.Header.Get("ETag")}
	if a.body, a.err = io.ReadAll(res.Body); a.err == nil && a.status >= 300 && len(a.body) > 0 {
		var problem struct {
			Code string `json:"code"`
		}
		_ = json.Unmarshal(a.body, &problem) // a status without a problem is recorded all the same
		a.code = problem.Code
	}
	return a
}

// end is how a reply ends a call in the history.
func (a reply) end(op history.Op) history.Event {
	e := history.Event{Op: op, Status: a.status, Code: a.code, RequestID: a.request}
	switch {
	case errors.Is(a.err, syscall.ECONNREFUSED):
		e.Kind = history.Fail
	case a.err != nil:
		e.Kind = history.Info
	case a.status < 400:
		e.Kind = history.OK
	case a.status < 500:
		e.Kind = history.Fail
	default:
		e.Kind = history.Info
	}
	if a.err != nil {
		e.Error = a.err.Error()
	}
	return e
}

// answered tells whether the call was answered by a 2xx.
func (a reply) answered() bool { return a.err == nil && a.status >= 200 && a.status < 300 }

// final tells whether asking again is pointless.
func (a reply) final() bool {
	return a.err == nil && a.status < 500 && a.status != http.StatusTooManyRequests && a.status != http.StatusRequestTimeout
}

func (a reply) String() string {
	if a.err != nil {
		return a.err.Error()
	}
	return fmt.Sprintf("%d %s %.300s", a.status, a.code, a.body)
}
