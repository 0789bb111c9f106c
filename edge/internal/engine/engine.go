// Package engine owns the edge's call to the engine: POST {engine}/v1/recommendations. It follows no
// redirects, uses no proxy of the environment, bounds the reply, and keeps of it only what has the form that
// storefronts are promised. Nothing of a reply appears in logs or errors.
package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"storefront.internal/edge/internal/recommend"
	"storefront.internal/shared/ident"
	"storefront.internal/shared/settings"
)

// Limits of a reply.
const (
	maxReply     = 256 << 10
	maxEngineIDs = 4 << 10
	maxItems     = 1000
)

// Client implements recommend.Engine.
type Client struct {
	url   string
	token settings.Secret
	http  *http.Client
}

var _ recommend.Engine = (*Client)(nil)

// New returns a client of the engine at the base URL. Deadlines are the caller's.
func New(baseURL string, token settings.Secret) *Client {
	transport := &http.Transport{
		DialContext:           (&net.Dialer{Timeout: time.Second, KeepAlive: 15 * time.Second}).DialContext,
		MaxIdleConns:          256,
		MaxIdleConnsPerHost:   256,
		IdleConnTimeout:       60 * time.Second,
		TLSHandshakeTimeout:   2 * time.Second,
		ResponseHeaderTimeout: 2 * time.Second,
		DisableCompression:    true,
		ForceAttemptHTTP2:     true,
	}
	return &Client{url: strings.TrimRight(baseURL, "/") + "/v1/recommendations", token: token,
		http: &http.Client{Transport: transport,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
}

// Close closes the idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Recommend implements recommend.Engine.
func (c *Client) Recommend(ctx context.Context,
	q *recommend.EngineRequest) (recommend.EngineResponse, error) {
	body, err := json.Marshal(q)
	if err != nil {
		return recommend.EngineResponse{}, fmt.Errorf("encode engine request: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		return recommend.EngineResponse{}, errors.New("engine: the URL is malformed")
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	// Not sent. It tells the transport that the request may be repeated when an idle connection turns out to
	// be closed.
	req.Header["Idempotency-Key"] = nil
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token.Reveal())
	}
	if q.Traceparent != "" {
		req.Header.Set("traceparent", q.Traceparent)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return recommend.EngineResponse{}, fmt.Errorf("engine: %w", err)
	}
	defer resp.Body.Close()
	reply, err := io.ReadAll(io.LimitReader(resp.Body, maxReply+1))
	switch {
	case err != nil:
		return recommend.EngineResponse{}, fmt.Errorf("engine: read reply: %w", err)
	case resp.StatusCode != http.StatusOK:
		return recommend.EngineResponse{}, fmt.Errorf("engine: status %d", resp.StatusCode)
	case len(reply) > maxReply:
		return recommend.EngineResponse{}, errors.New("engine: the reply is too large")
	}
	return decode(reply)
}

type replyJSON struct {
	Items []struct {
		ItemID    string `json:"item_id"`
		VariantID string `json:"variant_id"`
	} `json:"items"`
	EngineIDs json.RawMessage `json:"engine_ids"`
}

// decode returns the well-formed items, in their order, and the engine's own ids.
func decode(reply []byte) (recommend.EngineResponse, error) {
	var in replyJSON
	if json.Unmarshal(reply, &in) != nil || in.Items == nil {
		return recommend.EngineResponse{}, errors.New("engine: the reply is malformed")
	}
	var p recommend.EngineResponse
	for _, item := range in.Items[:min(len(in.Items), maxItems)] {
		if !ident.Valid(ident.Item, item.ItemID) {
			continue
		}
		pick := recommend.Item{ItemID: ident.ItemID(item.ItemID)}
		if ident.Valid(ident.Variant, item.VariantID) {
			pick.VariantID = ident.VariantID(item.VariantID)
		}
		p.Items = append(p.Items, pick)
	}
	p.EngineIDs = engineIDs(in.EngineIDs)
	return p, nil
}

// engineIDs returns the engine's own ids, an object, as compact JSON without duplicate names; nil when they
// are no object, too large, or hold a NUL, which PostgreSQL cannot store.
func engineIDs(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 || raw[0] != '{' || bytes.Contains(raw, []byte(`\u0000`)) {
		return nil
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var object map[string]any
	if dec.Decode(&object) != nil {
		return nil
	}
	out, err := json.Marshal(object)
	if err != nil || len(out) > maxEngineIDs {
		return nil
	}
	return out
}
