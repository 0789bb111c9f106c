package services

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"
)

// Internal is a caller of the internal surface.
type Internal struct {
	BaseURL        string
	ConnectorToken string
	BackendToken   string
}

// StatusError is an answer that was not what the caller hoped for.
type StatusError struct {
	Status int
	Body   string
}

func (e *StatusError) Error() string { return fmt.Sprintf("status %d: %s", e.Status, e.Body) }

// Connection is what extension E2 answers.
type Connection struct {
	ConnectionID string `json:"connection_id"`
	StoreID      string `json:"store_id"`
	Token        string `json:"token"`
}

// CreateConnection makes a custom connection (extension E2); a *StatusError of 409 says that the store is connected.
func (c Internal) CreateConnection(ctx context.Context, externalStoreID string) (Connection, error) {
	var answer Connection
	err := c.call(ctx, http.MethodPost, "/internal/v1/connections", c.ConnectorToken, map[string]any{"external_store_id": externalStoreID}, &answer)
	return answer, err
}

// Key is a storefront key's record.
type Key struct {
	APIKeyID string `json:"api_key_id"`
	Secret   string `json:"secret"`
}

// IssueKey makes a storefront key with all scopes (operation 6).
func (c Internal) IssueKey(ctx context.Context, connectionID string) (Key, error) {
	var answer Key
	err := c.call(ctx, http.MethodPost, "/internal/v1/connections/"+connectionID+"/api-keys", c.BackendToken, nil, &answer)
	return answer, err
}

// Keys lists the live keys (operation 7).
func (c Internal) Keys(ctx context.Context, connectionID string) ([]Key, error) {
	var answer struct {
		Keys []Key `json:"keys"`
	}
	err := c.call(ctx, http.MethodGet, "/internal/v1/connections/"+connectionID+"/api-keys", c.BackendToken, nil, &answer)
	return answer.Keys, err
}

// Slice is a part of the queue view.
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

// Queue reads the queue view (operation 9).
func (c Internal) Queue(ctx context.Context) (Queue, error) {
	var answer Queue
	err := c.call(ctx, http.MethodGet, "/internal/v1/brain-interactions/queue", c.BackendToken, nil, &answer)
	return answer, err
}

// Resume leaves `blocked` (extension E5).
func (c Internal) Resume(ctx context.Context) error {
	return c.call(ctx, http.MethodPost, "/internal/v1/brain-interactions/resume", c.ConnectorToken, nil, nil)
}

// ReplayDead sends what died of a connection once more (extension E6) and answers how many there are.
func (c Internal) ReplayDead(ctx context.Context, connectionID string) (int, error) {
	var answer struct {
		Replayed int `json:"replayed"`
	}
	err := c.call(ctx, http.MethodPost, "/internal/v1/brain-interactions/dead/replay", c.ConnectorToken, map[string]string{"connection_id": connectionID}, &answer)
	return answer.Replayed, err
}

func (c Internal) call(ctx context.Context, method, path, token string, in, out any) error {
	return Call(ctx, method, c.BaseURL+path, token, in, out)
}

// Call makes one request with a bearer token and decodes a successful answer into out, when out is not nil. Any other answer
// is a *StatusError.
func Call(ctx context.Context, method, url, token string, in, out any) error {
	var body io.Reader
	if in != nil {
		text, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(text)
	}
	r, err := http.NewRequestWithContext(ctx, method, url, body)
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer "+token)
	if in != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return err
	}
	if res.StatusCode >= 300 {
		return fmt.Errorf("%s %s: %w", method, url, &StatusError{res.StatusCode, string(text)})
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(text, out)
}
