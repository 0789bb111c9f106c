package client

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"time"
)

// Internal calls the internal surface.
type Internal struct {
	HTTP           *http.Client // nil: http.DefaultClient
	BaseURL        string
	ConnectorToken string // of the connector principal of ConnectorProvider
	BackendToken   string
}

// ConnectorProvider is the provider whose connector principal has a deployment's connector token as it is.
const ConnectorProvider = "tiendanube"

// ConnectorToken is the token of a provider's connector principal; token is that of ConnectorProvider.
func ConnectorToken(token, provider string) string {
	if provider == ConnectorProvider {
		return token
	}
	return token + "-" + provider
}

// Connection is a connection that was created, with the token of its connector.
type Connection struct {
	ConnectionID string `json:"connection_id"`
	StoreID      string `json:"store_id"`
	Token        string `json:"token"`
}

// CreateConnection makes a custom connection. A *StatusError of 409 says that the shop has one already.
func (c Internal) CreateConnection(ctx context.Context, externalStoreID string) (Connection, error) {
	var out Connection
	err := c.call(ctx, http.MethodPost, "/connections", c.ConnectorToken,
		map[string]string{"external_store_id": externalStoreID}, &out)
	return out, err
}

// Key is a storefront key.
type Key struct {
	APIKeyID string `json:"api_key_id"`
	Secret   string `json:"secret"`
}

// IssueKey makes a storefront key with all scopes.
func (c Internal) IssueKey(ctx context.Context, connectionID string) (Key, error) {
	var out Key
	err := c.call(ctx, http.MethodPost, "/connections/"+connectionID+"/api-keys", c.BackendToken, nil, &out)
	return out, err
}

// ListKeys lists the live keys of a connection.
func (c Internal) ListKeys(ctx context.Context, connectionID string) ([]Key, error) {
	var out struct {
		Keys []Key `json:"keys"`
	}
	err := c.call(ctx, http.MethodGet, "/connections/"+connectionID+"/api-keys", c.BackendToken, nil, &out)
	return out.Keys, err
}

// RevokeKey revokes a storefront key.
func (c Internal) RevokeKey(ctx context.Context, connectionID, keyID string) error {
	return c.call(ctx, http.MethodDelete, "/connections/"+connectionID+"/api-keys/"+keyID, c.BackendToken,
		nil, nil)
}

// EraseVisitor asks for the erasure of a visitor.
func (c Internal) EraseVisitor(ctx context.Context, connectionID, visitorID string) error {
	return c.call(ctx, http.MethodDelete, "/connections/"+connectionID+"/visitors/"+visitorID,
		c.ConnectorToken, nil, nil)
}

// Slice is the part of the queue view that is about one connection, or about all of them.
type Slice struct {
	ConnectionID         string    `json:"connection_id"`
	Pending              int       `json:"pending"`
	OldestPendingAt      time.Time `json:"oldest_pending_at"`
	OldestPendingSeconds int       `json:"oldest_pending_seconds"`
	DeadLast24h          int       `json:"dead_last_24h"`
	UnconfirmedCreations int       `json:"unconfirmed_creations"`
}

// Queue is the queue view.
type Queue struct {
	ReadAt time.Time `json:"read_at"`
	Worker struct {
		State     string     `json:"state"`
		BlockedAt *time.Time `json:"blocked_at"`
	} `json:"worker"`
	Total       Slice   `json:"total"`
	Connections []Slice `json:"connections"`
}

// ViewQueue reads the queue view.
func (c Internal) ViewQueue(ctx context.Context) (Queue, error) {
	var out Queue
	err := c.call(ctx, http.MethodGet, "/brain-interactions/queue", c.BackendToken, nil, &out)
	return out, err
}

// ResumeDelivery ends the state `blocked`.
func (c Internal) ResumeDelivery(ctx context.Context) error {
	return c.call(ctx, http.MethodPost, "/brain-interactions/resume", c.ConnectorToken, nil, nil)
}

// The kinds of deliveries.
const (
	Interaction = "interaction"
	Envelope    = "envelope"
)

// ReplayDead sends the dead letters of a kind of a connection once more and returns how many there are.
func (c Internal) ReplayDead(ctx context.Context, connectionID, kind string) (int, error) {
	var out struct {
		Replayed int `json:"replayed"`
	}
	body := map[string]string{"connection_id": connectionID, "kind": kind}
	err := c.call(ctx, http.MethodPost, "/brain-interactions/dead/replay", c.ConnectorToken, body, &out)
	return out.Replayed, err
}

// DeliverWebhook sends a webhook as the platform connector hands it on, signed with the secret of our app.
func (c Internal) DeliverWebhook(ctx context.Context, provider, endpointID, appSecret string,
	body []byte) Response {
	mac := hmac.New(sha256.New, []byte(appSecret))
	mac.Write(body)
	return Do(ctx, c.HTTP, Request{
		Method: http.MethodPost, URL: c.url("/webhooks/" + provider + "/" + endpointID),
		Token: ConnectorToken(c.ConnectorToken, provider), Body: body,
		Header: http.Header{
			"X-Provider-Signature": {hex.EncodeToString(mac.Sum(nil))},
			"Content-Type":         {"application/octet-stream"},
		},
	})
}

func (c Internal) url(path string) string { return c.BaseURL + "/internal/v1" + path }

func (c Internal) call(ctx context.Context, method, path, token string, in, out any) error {
	return Call(ctx, c.HTTP, Request{Method: method, URL: c.url(path), Token: token, Body: in}, out)
}
