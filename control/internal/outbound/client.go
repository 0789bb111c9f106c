package outbound

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"time"
)

// Bounds of a request where the configuration says nothing.
const (
	DefaultTimeout = 10 * time.Second
	DefaultMaxBody = 16 << 20 // contract, section 1 "Body limits": provider answers
)

// Config bounds a client. The zero value is what production wants.
type Config struct {
	Timeout time.Duration // of a request with its answer's body; 0: DefaultTimeout
	MaxBody int64         // of an answer, decompressed; 0: DefaultMaxBody

	// Open are networks that may be called in plain http, on any port and by address, for the local stack and tests. New
	// refuses them when Production is set.
	Open       []netip.Prefix
	Production bool

	Resolver *net.Resolver // nil: the system's
	TLS      *tls.Config   // nil: the system's roots
}

// Client sends requests through the guard. It may be used by any number of goroutines.
type Client struct {
	guard   guard
	http    *http.Client
	timeout time.Duration
	maxBody int64
}

// New returns a client, or an error for a configuration that production must not have.
func New(cfg Config) (*Client, error) {
	if cfg.Production && (len(cfg.Open) > 0 || cfg.TLS != nil || cfg.Resolver != nil) {
		return nil, errors.New("outbound: networks, roots and resolvers of tests are not for production")
	}
	if cfg.Timeout <= 0 {
		cfg.Timeout = DefaultTimeout
	}
	if cfg.MaxBody <= 0 {
		cfg.MaxBody = DefaultMaxBody
	}
	c := &Client{guard: guard{deny: denied(), open: cfg.Open}, timeout: cfg.Timeout, maxBody: cfg.MaxBody}
	dialer := &net.Dialer{Timeout: min(cfg.Timeout, 5*time.Second), Resolver: cfg.Resolver, Control: c.guard.control}
	c.http = &http.Client{
		Transport: &http.Transport{
			Proxy:                  nil, // one of the environment would dial in our place
			DialContext:            dialer.DialContext,
			TLSClientConfig:        cfg.TLS,
			TLSHandshakeTimeout:    min(cfg.Timeout, 5*time.Second),
			ForceAttemptHTTP2:      true,
			DisableCompression:     true, // decompressed here, under a cap
			MaxIdleConns:           256,
			MaxIdleConnsPerHost:    16,
			IdleConnTimeout:        60 * time.Second,
			MaxResponseHeaderBytes: 64 << 10,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return c, nil
}

// Close ends idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Check reports whether requests to the URL would pass the guard's first half. Nothing is resolved.
func (c *Client) Check(url string) error {
	_, err := c.guard.check(url)
	return err
}

// Request is one call. The header and the body are sent as they are.
type Request struct {
	Method string
	URL    string
	Header http.Header
	Body   []byte

	// Part asks for a part of the body alone, so that a body over the cap can be read piece by piece. nil: the whole.
	Part *Part
}

// Part is a piece of a body, in bytes.
type Part struct{ Offset, Length int64 }

// Answer is a complete answer: of whatever status but a redirect.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte // decompressed
	End    bool   // of a request for a part: the body ends with it
}

// Do sends a request once and reads the answer. The error is an *Error.
func (c *Client) Do(ctx context.Context, r Request) (*Answer, error) {
	u, err := c.guard.check(r.URL)
	if err != nil {
		return nil, err
	}
	bounded, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(bounded, r.Method, u.String(), bytes.NewReader(r.Body))
	if err != nil {
		return nil, &Error{Reason: InvalidCall}
	}
	if r.Header != nil {
		req.Header = r.Header.Clone()
	}
	if r.Part == nil {
		req.Header.Set("Accept-Encoding", "gzip")
	} else {
		r.Part.ask(req.Header)
	}
	res, err := c.http.Do(req)
	if err != nil {
		return nil, failure(ctx, err)
	}
	defer res.Body.Close()
	if res.StatusCode >= 300 && res.StatusCode < 400 {
		return nil, &Error{Reason: Redirected}
	}
	a := &Answer{Status: res.StatusCode, Header: res.Header}
	if r.Part != nil && a.Status < 300 {
		err = c.readPart(a, res, *r.Part)
	} else {
		err = c.readWhole(a, res)
	}
	if err != nil {
		return nil, failure(ctx, err)
	}
	return a, nil
}
