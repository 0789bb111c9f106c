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
	"strconv"
	"strings"
	"time"

	"storefront.internal/engine-relay/internal/deliver"
	"storefront.internal/shared/crashpoint"
	"storefront.internal/shared/deliveries"
	"storefront.internal/shared/tracing"
)

// maxAnswer is the most of an answer that is read.
const maxAnswer = 1 << 20

// Config names the engine.
type Config struct {
	URL     string // base, http or https
	Token   string // bearer; sent as it is
	Timeout time.Duration
	Conns   int // most connections that are kept idle; about the number of workers
}

// Client sends to one engine with one credential.
type Client struct {
	http       *http.Client
	base       string
	token      string
	timeout    time.Duration
	credential deliveries.Credential
}

// New returns a client, or says what is wrong with the URL.
func New(cfg Config) (*Client, error) {
	u, err := url.Parse(cfg.URL)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, errors.New("the engine's URL must be http(s)://host[:port][/path]")
	}
	if cfg.Timeout <= 0 {
		cfg.Timeout = 10 * time.Second
	}
	return &Client{
		http: &http.Client{
			Transport: &http.Transport{
				DialContext:            dialCounted((&net.Dialer{Timeout: min(cfg.Timeout, 3*time.Second)}).DialContext),
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

// Close ends idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Send posts the bodies as one request of the kind's call, within the client's timeout.
func (c *Client) Send(ctx context.Context, kind deliveries.Kind, bodies [][]byte) deliver.Reply {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	way := &way{}
	ctx = httptrace.WithClientTrace(ctx, way.trace())
	req, err := c.request(ctx, kind, bodies)
	if err != nil {
		return deliver.Reply{Sent: deliver.NotSent, Err: err}
	}
	res, err := c.http.Do(req)
	if err != nil {
		if way.sentNothing(ctx) {
			return deliver.Reply{Sent: deliver.NotSent, Err: redact(err)}
		}
		return deliver.Reply{Sent: deliver.Unanswered, Err: redact(err)}
	}
	defer res.Body.Close()
	reply := deliver.Reply{Sent: deliver.Answered, Status: res.StatusCode, RetryAfter: retryAfter(res.Header.Get("Retry-After"), time.Now())}
	body, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer+1))
	switch {
	case kind != deliveries.Interaction || res.StatusCode != http.StatusOK:
	case err != nil:
		reply.Err = redact(err)
	case len(body) > maxAnswer:
		reply.Err = errors.New("the engine's answer is too long")
	default:
		reply.Results, reply.Err = parseResults(body, len(bodies))
	}
	return reply
}

func (c *Client) request(ctx context.Context, kind deliveries.Kind, bodies [][]byte) (*http.Request, error) {
	path, media, head, tail := "/v1/interactions", "application/json", `{"interactions":[`, `]}`
	switch kind {
	case deliveries.Interaction:
	case deliveries.Envelope:
		path, media, head, tail = "/v1/observations", "application/cloudevents-batch+json", `[`, `]`
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
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base+path, bytes.NewReader(append(whole, tail...)))
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

// redact keeps the engine's address, which may hold a secret path, out of logs.
func redact(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}

// retryAfter reads seconds or a date; anything else is none.
func retryAfter(text string, now time.Time) time.Duration {
	text = strings.TrimSpace(text)
	if n, err := strconv.ParseUint(text, 10, 32); err == nil {
		return time.Duration(n) * time.Second
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(0, at.Sub(now))
	}
	return 0
}

// way watches whether a request left.
type way struct {
	conns []*countedConn
	start []int64
	blind bool // a connection that is not counted was used
}

func (w *way) trace() *httptrace.ClientTrace {
	return &httptrace.ClientTrace{
		GotConn: func(info httptrace.GotConnInfo) {
			c, ok := counted(info.Conn)
			if !ok {
				w.blind = true
				return
			}
			w.conns, w.start = append(w.conns, c), append(w.start, c.written.Load())
		},
		WroteRequest: func(info httptrace.WroteRequestInfo) {
			if info.Err == nil {
				crashpoint.Hit(crashpoint.DeliverSent)
			}
		},
	}
}

// sentNothing is true only when it is sure: no connection was had, or none of them carried a byte since. After the
// context's end the transport may be writing still, so then nothing is sure.
func (w *way) sentNothing(ctx context.Context) bool {
	if w.blind || len(w.conns) > 0 && ctx.Err() != nil {
		return false
	}
	for i, c := range w.conns {
		if c.written.Load() != w.start[i] {
			return false
		}
	}
	return true
}
