package client

import (
	"context"
	"maps"
	"net/http"
	"time"
)

// Storefront calls the public surface with the key of one connection.
type Storefront struct {
	HTTP         *http.Client // nil: http.DefaultClient
	BaseURL      string
	ConnectionID string
	Key          string
	Header       http.Header // sent with every request
}

// Signal is the wire form of one signal.
type Signal struct {
	ID         string         `json:"signal_id,omitempty"`
	Type       string         `json:"type,omitempty"`
	OccurredAt string         `json:"occurred_at,omitempty"`
	DecisionID string         `json:"decision_id,omitempty"`
	ItemID     string         `json:"item_id,omitempty"`
	VariantID  string         `json:"variant_id,omitempty"`
	Position   *int           `json:"position,omitempty"`
	Quantity   *int           `json:"quantity,omitempty"`
	OrderID    string         `json:"order_external_id,omitempty"`
	Visitor    Visitor        `json:"visitor,omitzero"`
	Client     map[string]any `json:"client,omitempty"`
}

// Visitor identifies the shopper of a signal.
type Visitor struct {
	VisitorID string `json:"visitor_id,omitempty"`
	SessionID string `json:"session_id,omitempty"`
}

// Timestamp formats an instant as clients send it.
func Timestamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000000Z") }

// Decision is the response to a recommendation request.
type Decision struct {
	ID     string            `json:"decision_id"`
	Items  []RecommendedItem `json:"items"`
	Source string            `json:"source"`
}

// RecommendedItem is one element of a Decision.
type RecommendedItem struct {
	ItemID    string `json:"item_id"`
	VariantID string `json:"variant_id"`
}

// Result is the result of one signal of a batch.
type Result struct {
	Index    int    `json:"index"`
	SignalID string `json:"signal_id"`
	Status   string `json:"status"`
	Reason   string `json:"reason"`
}

// Recommend asks for a recommendation; body nil asks for placement "home".
func (s Storefront) Recommend(ctx context.Context, body any) (Decision, error) {
	if body == nil {
		body = map[string]string{"placement": "home"}
	}
	var d Decision
	err := s.post(ctx, "recommendations", body).Decode(&d)
	return d, err
}

// RecordSignals sends a batch: []Signal, or any value that is encoded as the member `signals`.
func (s Storefront) RecordSignals(ctx context.Context, batch any) Response {
	return s.post(ctx, "storefront-signals", map[string]any{"signals": batch})
}

// GetItem reads an item; with an entity tag, only when it differs.
func (s Storefront) GetItem(ctx context.Context, itemID, entityTag string) Response {
	header := http.Header{}
	maps.Copy(header, s.Header)
	if entityTag != "" {
		header.Set("If-None-Match", entityTag)
	}
	return Do(ctx, s.HTTP, Request{
		Method: http.MethodGet, URL: s.BaseURL + "/v1/catalog/items/" + itemID, Token: s.Key, Header: header,
	})
}

func (s Storefront) post(ctx context.Context, operation string, body any) Response {
	return Do(ctx, s.HTTP, Request{
		Method: http.MethodPost, URL: s.BaseURL + "/v1/connections/" + s.ConnectionID + "/" + operation,
		Token: s.Key,
		Body:  body, Header: s.Header,
	})
}
