package engine

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"time"

	"storefront.internal/engine-relay/internal/deliver"
	"storefront.internal/shared/backoff"
	"storefront.internal/shared/deliveries"
	"storefront.internal/shared/failpoint"
	"storefront.internal/shared/tracing"
)

const (
	maxAnswer     = 1 << 20        // bytes of an answer; a longer one counts as unreadable
	maxRetryAfter = 24 * time.Hour // a longer Retry-After is cut to this
)

// Config names the engine.
type Config struct {
	URL     string // base, http or https
	Token   string // bearer token
	Timeout time.Duration
	Conns   int // idle connections that are kept; about the number of workers
}

// Client sends to one engine with one credential.
type Client struct {
	http       *http.Client
	base       string
	token      string
	timeout    time.Duration
	credential deliveries.Credential
}

// New returns a client, or an error about the URL.
func New(cfg Config) (*Client, error) {
	u, err := url.Parse(cfg.URL)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || u.User != nil ||
		u.RawQuery != "" || u.Fragment != "" {
		return nil, errors.New("the engine's URL must be http(s)://host[:port][/path]")
	}
	if cfg.Timeout <= 0 {
		cfg.Timeout = 10 * time.Second
	}
	dialer := net.Dialer{Timeout: min(cfg.Timeout, 3*time.Second)}
	return &Client{
		http: &http.Client{
			Transport: &http.Transport{
				DialContext:            dialCounted(dialer.DialContext),
				TLSHandshakeTimeout:    cfg.Timeout,
				MaxIdleConnsPerHost:    max(cfg.Conns, 2),
				IdleConnTimeout:        30 * time.Second,
				DisableCompression:     true,
				MaxResponseHeaderBytes: 64 << 10,
			},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		base:       strings.TrimRight(u.String(), "/"),
		token:      cfg.Token,
		timeout:    cfg.Timeout,
		credential: sha256.Sum256([]byte(cfg.Token)),
	}, nil
}

// Credential is the SHA-256 of the bearer token.
func (c *Client) Credential() deliveries.Credential { return c.credential }

// Close closes idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Send posts the bodies as one request of the kind's call, within the client's timeout.
func (c *Client) Send(ctx context.Context, kind deliveries.Kind, bodies [][]byte) deliver.Reply {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	body, err := requestBody(kind, bodies)
	if err != nil {
		return deliver.Reply{Transmission: deliver.NotSent, Err: err}
	}
	res, sent, err := c.post(ctx, kind, body)
	if err != nil {
		return deliver.Reply{Transmission: sent, Err: redact(err)}
	}
	defer res.Body.Close()
	reply := deliver.Reply{
		Transmission: deliver.Answered, Status: res.StatusCode,
		RetryAfter: backoff.RetryAfter(res.Header.Get("Retry-After"), time.Now(), maxRetryAfter),
	}
	answer, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer+1))
	switch {
	case kind != deliveries.Interaction || res.StatusCode != http.StatusOK:
	case err != nil:
		reply.Err = redact(err)
	case len(answer) > maxAnswer:
		reply.Err = errors.New("the engine's answer is too long")
	default:
		reply.Results, reply.Err = parseResults(answer, len(bodies))
	}
	return reply
}

// post makes the request, and says how far it came when there is no response. The engine may close an idle
// connection at the moment the request takes it. As long as no byte was written, post takes another one. The
// transport itself does so only for requests that it may also repeat after they were sent.
func (c *Client) post(ctx context.Context, kind deliveries.Kind, body []byte) (*http.Response,
	deliver.Transmission, error) {
	for {
		tracker := &sendTracker{}
		req, err := c.request(httptrace.WithClientTrace(ctx, tracker.trace()), kind, body)
		if err != nil {
			return nil, deliver.NotSent, err
		}
		res, err := c.http.Do(req)
		switch {
		case err == nil:
			return res, deliver.Answered, nil
		case !tracker.sentNothing(ctx):
			return nil, deliver.Unanswered, err
		case !tracker.reused || ctx.Err() != nil:
			return nil, deliver.NotSent, err
		}
	}
}

// requestBody joins the bodies to the body of the kind's call.
func requestBody(kind deliveries.Kind, bodies [][]byte) ([]byte, error) {
	head, tail := `{"interactions":[`, `]}`
	switch kind {
	case deliveries.Interaction:
	case deliveries.Envelope:
		head, tail = `[`, `]`
	default:
		return nil, fmt.Errorf("the engine has no call for kind %d", kind)
	}
	size := len(head) + len(tail) + len(bodies)
	for _, b := range bodies {
		size += len(b)
	}
	whole := append(make([]byte, 0, size), head...)
	for i, b := range bodies {
		if i > 0 {
			whole = append(whole, ',')
		}
		whole = append(whole, b...)
	}
	return append(whole, tail...), nil
}

func (c *Client) request(ctx context.Context, kind deliveries.Kind, body []byte) (*http.Request, error) {
	path, media := "/v1/interactions", "application/json"
	if kind == deliveries.Envelope {
		path, media = "/v1/observations", "application/cloudevents-batch+json"
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", media)
	req.Header.Set("Accept", "application/json")
	req.Header.Set("Authorization", "Bearer "+c.token)
	req.Header.Set("User-Agent", "storefront-engine-relay")
	if traceparent := tracing.TraceparentOf(ctx); traceparent != "" {
		req.Header.Set("Traceparent", traceparent)
	}
	return req, nil
}

// redact removes the engine's address, which may have a secret path, from an error for the log.
func redact(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}

// sendTracker records whether any byte of a request was written.
type sendTracker struct {
	conns     []*countedConn
	start     []int64
	untracked bool // a connection without a counter was used
	reused    bool // the last connection had been idle
}

func (t *sendTracker) trace() *httptrace.ClientTrace {
	return &httptrace.ClientTrace{
		GotConn: func(info httptrace.GotConnInfo) {
			t.reused = info.Reused
			c, ok := counted(info.Conn)
			if !ok {
				t.untracked = true
				return
			}
			t.conns, t.start = append(t.conns, c), append(t.start, c.written.Load())
		},
		WroteRequest: func(info httptrace.WroteRequestInfo) {
			if info.Err == nil {
				failpoint.Hit(failpoint.DeliverSent)
			}
		},
	}
}

// sentNothing is true only when it is certain: there was no connection, or no connection wrote a byte since.
// After ctx has ended the transport may still be writing, so nothing is certain.
func (t *sendTracker) sentNothing(ctx context.Context) bool {
	if t.untracked || len(t.conns) > 0 && ctx.Err() != nil {
		return false
	}
	for i, c := range t.conns {
		if c.written.Load() != t.start[i] {
			return false
		}
	}
	return true
}
