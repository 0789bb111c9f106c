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

// Defaults of Config.
const (
	DefaultTimeout = 10 * time.Second
	DefaultMaxBody = 16 << 20
)

// Bounds of a response by the kind of its call, for Request.MaxBody.
const (
	MaxPart  = DefaultMaxBody // a part of an export, which holds whole entities
	MaxPage  = 4 << 20        // a page of a listing, or a product or an order
	MaxSmall = 1 << 20        // a category, categories, a shop, subscriptions
)

// Config configures a client. Production uses the zero value and Production.
type Config struct {
	Timeout time.Duration // of a request with the body of its response; 0: DefaultTimeout
	MaxBody int64         // of any response, decompressed; 0: DefaultMaxBody

	Budget  int64    // bytes of all responses that are read or decoded at a time; 0: DefaultBudget
	Metrics *Metrics // nil: none

	// AllowedNetworks may be called by plain http, at any port and by address: for the local stack and tests.
	// New refuses them when Production is set.
	AllowedNetworks []netip.Prefix
	Production      bool

	Resolver *net.Resolver // nil: the system's
	TLS      *tls.Config   // nil: the system's roots
}

// Client sends requests to hosts that the guard allows. It is safe for concurrent use.
type Client struct {
	guard   guard
	http    *http.Client
	timeout time.Duration
	maxBody int64
	budget  *budget
}

// New returns a client, or an error for a configuration that production must not have.
func New(cfg Config) (*Client, error) {
	if cfg.Production && (len(cfg.AllowedNetworks) > 0 || cfg.TLS != nil || cfg.Resolver != nil) {
		return nil, errors.New("outbound: allowed networks, TLS roots and resolvers are for tests only")
	}
	if cfg.Timeout <= 0 {
		cfg.Timeout = DefaultTimeout
	}
	if cfg.MaxBody <= 0 {
		cfg.MaxBody = DefaultMaxBody
	}
	c := &Client{guard: newGuard(cfg.AllowedNetworks), timeout: cfg.Timeout,
		maxBody: cfg.MaxBody, budget: newBudget(cfg.Budget, cfg.Metrics)}
	dialer := &net.Dialer{Timeout: min(cfg.Timeout, 5*time.Second), Resolver: cfg.Resolver,
		Control: c.guard.control}
	c.http = &http.Client{
		Transport: &http.Transport{
			Proxy:                  nil, // a proxy would dial without our checks
			DialContext:            dialer.DialContext,
			TLSClientConfig:        cfg.TLS,
			TLSHandshakeTimeout:    min(cfg.Timeout, 5*time.Second),
			ForceAttemptHTTP2:      true,
			DisableCompression:     true, // decompressed here, up to MaxBody
			MaxIdleConns:           256,
			MaxIdleConnsPerHost:    16,
			IdleConnTimeout:        60 * time.Second,
			MaxResponseHeaderBytes: 64 << 10,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return c, nil
}

// Close closes idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Request is one call. Header and body are sent as they are.
type Request struct {
	Method string
	URL    string
	Header http.Header
	Body   []byte

	MaxBody int64 // of the response, decompressed; 0: that of the client, which it cannot exceed

	// Range asks for a part of the body alone, so that a body over the cap can be read piece by piece.
	// nil: the whole.
	Range *ByteRange
}

// ByteRange is a part of a body.
type ByteRange struct{ Offset, Length int64 }

// Response is a complete response with any status but a redirect.
type Response struct {
	Status int
	Header http.Header
	Body   []byte // decompressed
	EOF    bool   // of a request for a range: it is the last one

	reserved reservation
}

// Release gives the bytes of the body back to the client's budget. The caller calls it once the body is
// decoded, and before it waits for anything; a second call does nothing.
func (a *Response) Release() { a.reserved.shrink(0) }

// Do sends a request once and reads the response. The error is an *Error. The caller calls Release on the
// response.
func (c *Client) Do(ctx context.Context, r Request) (*Response, error) {
	u, err := c.guard.check(r.URL)
	if err != nil {
		return nil, err
	}
	bounded, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(bounded, r.Method, u.String(), bytes.NewReader(r.Body))
	if err != nil {
		return nil, &Error{Reason: InvalidRequest}
	}
	if r.Header != nil {
		req.Header = r.Header.Clone()
	}
	if r.Range == nil {
		req.Header.Set("Accept-Encoding", "gzip")
	} else {
		r.Range.setHeader(req.Header)
	}
	res, err := c.http.Do(req)
	if err != nil {
		return nil, failure(ctx, err)
	}
	defer res.Body.Close()
	if res.StatusCode >= 300 && res.StatusCode < 400 {
		return nil, &Error{Reason: Redirected}
	}
	a := &Response{Status: res.StatusCode, Header: res.Header, reserved: reservation{budget: c.budget}}
	most := c.maxBody
	if r.MaxBody > 0 {
		most = min(most, r.MaxBody)
	}
	if r.Range != nil && a.Status < 300 {
		part := ByteRange{Offset: r.Range.Offset, Length: min(r.Range.Length, most)}
		err = a.readPart(bounded, res, part)
	} else {
		err = a.readWhole(bounded, res, most)
	}
	if err != nil {
		a.Release()
		return nil, failure(ctx, err)
	}
	return a, nil
}
