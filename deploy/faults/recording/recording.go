// Package recording calls a deployment as its clients do and writes each call into the history of a run: what
// was sent before the request, what came back after it. It makes each call once; retries are the caller's.
package recording

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"syscall"
	"time"

	"storefront.internal/deploy/faults/history"
	"storefront.internal/deploy/stack/client"
)

// Endpoint is a process that clients call.
type Endpoint struct{ Name, URL string }

// Client makes recorded calls.
type Client struct {
	Recorder       *history.Recorder
	HTTP           *http.Client
	Number         int // of the client in the history
	Control        Endpoint
	ConnectorToken string
	BackendToken   string
	AppSecret      string
	Timeout        time.Duration // of each call; 0: a timeout that fits the operation
	Steady         bool          // the calls are made at a fixed rate
}

// NewHTTP returns an HTTP client for many concurrent calls.
func NewHTTP() *http.Client {
	return &http.Client{Transport: &http.Transport{
		MaxIdleConnsPerHost: 64, IdleConnTimeout: 30 * time.Second, DisableCompression: true,
		DialContext: (&net.Dialer{Timeout: 3 * time.Second}).DialContext,
	}}
}

// Signal is a signal to send, with what the history says about it.
type Signal struct {
	client.Signal
	Malformed       bool // the client violates a rule on purpose
	ForeignDecision bool // its Decision is not one of the connection
	VisitorErased   bool // its visitor is erased later
}

func (s Signal) sent(connection string) history.SentSignal {
	sent := history.SentSignal{
		ID: s.ID, Type: s.Type, Decision: s.DecisionID, Item: s.ItemID, Variant: s.VariantID,
		Quantity:   s.Quantity,
		OccurredAt: s.OccurredAt, Malformed: s.Malformed, ForeignDecision: s.ForeignDecision,
		VisitorErased: s.VisitorErased,
	}
	if s.VisitorErased {
		sent.Visitor = s.Visitor.VisitorID
	} else {
		sent.Canary = history.Canary(connection, s.ID)
	}
	return sent
}

// Observation is an element of a batch of observations.
type Observation struct {
	Entity     string          `json:"entity"`
	ExternalID string          `json:"external_id"`
	Revision   int64           `json:"revision"`
	Operation  string          `json:"operation,omitempty"`
	Document   any             `json:"document,omitempty"`
	Raw        json.RawMessage `json:"raw,omitempty"`
}

// RecordSignals sends a batch of signals to an edge.
func (c Client) RecordSignals(ctx context.Context, edge Endpoint, connection string, key client.Key,
	batch []Signal) history.Event {
	wire, sent := make([]client.Signal, len(batch)), make([]history.SentSignal, len(batch))
	for i, s := range batch {
		wire[i], sent[i] = s.Signal, s.sent(connection)
	}
	return c.call(ctx, 8*time.Second,
		history.Event{Op: history.Signals, Edge: edge.Name, Connection: connection, Key: key.APIKeyID,
			Signals: sent},
		client.Request{Method: http.MethodPost, URL: edge.URL + "/v1/connections/" + connection +
			"/storefront-signals",
			Token: key.Secret, Body: map[string]any{"signals": wire}},
		func(body []byte, e *history.Event) error {
			answer := struct{ Results *[]history.SignalResult }{&e.Results}
			return json.Unmarshal(body, &answer)
		})
}

// Recommend asks an edge for a Decision.
func (c Client) Recommend(ctx context.Context, edge Endpoint, connection string,
	key client.Key) (client.Decision, error) {
	var d client.Decision
	e := c.call(ctx, 10*time.Second, history.Event{Op: history.Recommend, Edge: edge.Name,
		Connection: connection},
		client.Request{Method: http.MethodPost, URL: edge.URL + "/v1/connections/" + connection +
			"/recommendations",
			Token: key.Secret, Body: map[string]any{"placement": "home", "limit": 8}},
		func(body []byte, e *history.Event) error {
			if err := json.Unmarshal(body, &d); err != nil || d.ID == "" {
				return fmt.Errorf("no decision_id: %w", err)
			}
			e.Decision = d.ID
			for _, i := range d.Items {
				e.Items = append(e.Items, i.ItemID)
			}
			return nil
		})
	if e.Kind != history.OK {
		return d, fmt.Errorf("recommend: %d %s", e.Status, e.Error)
	}
	return d, nil
}

// GetItem reads an item from an edge.
func (c Client) GetItem(ctx context.Context, edge Endpoint, connection string, key client.Key,
	item string) history.Event {
	return c.call(ctx, 5*time.Second,
		history.Event{Op: history.Item, Edge: edge.Name, Connection: connection, Key: key.APIKeyID,
			Item: item},
		client.Request{Method: http.MethodGet, URL: edge.URL + "/v1/catalog/items/" + item,
			Token: key.Secret},
		func(body []byte, e *history.Event) error {
			var answer struct {
				Revision int64 `json:"refresh_revision"`
			}
			err := json.Unmarshal(body, &answer)
			if e.Revision = answer.Revision; err == nil && e.Revision == 0 && e.Status == http.StatusOK {
				err = errors.New("no refresh_revision")
			}
			return err
		})
}

// DeliverObservations sends a batch as the connector of a custom connection.
func (c Client) DeliverObservations(ctx context.Context, connection, token string,
	batch []Observation) history.Event {
	begin := history.Event{Op: history.Observe, Edge: c.Control.Name, Connection: connection}
	for _, o := range batch {
		sum := sha256.Sum256(o.Raw)
		begin.Observations = append(begin.Observations,
			history.SentObservation{Entity: o.Entity, External: o.ExternalID,
				Operation: o.Operation, Revision: o.Revision, Raw: hex.EncodeToString(sum[:])})
	}
	return c.call(ctx, 20*time.Second, begin,
		client.Request{Method: http.MethodPost, URL: c.internal(connection, "observations"), Token: token,
			Body: encode(batch)},
		func(body []byte, e *history.Event) error {
			answer := struct{ Results *[]history.ObservationResult }{&e.ObservationResults}
			return json.Unmarshal(body, &answer)
		})
}

// encode writes the body so that `raw` keeps its bytes. json.Marshal would remove their white space.
func encode(batch []Observation) []byte {
	elements := make([][]byte, len(batch))
	for i, o := range batch {
		raw := o.Raw
		o.Raw = nil
		text, err := json.Marshal(o)
		if err != nil {
			panic(err) // the documents are made by this program
		}
		elements[i] = append(append(append(text[:len(text)-1], `,"raw":`...), raw...), '}')
	}
	return append(append([]byte(`{"observations":[`), bytes.Join(elements, []byte(","))...), `]}`...)
}

// IssueKey issues a key, once: a key whose response is lost remains unused.
func (c Client) IssueKey(ctx context.Context, connection string) (client.Key, error) {
	var key client.Key
	e := c.call(ctx, 10*time.Second, history.Event{Op: history.KeyIssue, Edge: c.Control.Name,
		Connection: connection},
		client.Request{Method: http.MethodPost, URL: c.internal(connection, "api-keys"),
			Token: c.BackendToken},
		func(body []byte, e *history.Event) error {
			err := json.Unmarshal(body, &key)
			if e.Key = key.APIKeyID; err == nil && key.Secret == "" {
				err = errors.New("no secret")
			}
			return err
		})
	if e.Kind != history.OK {
		return client.Key{}, fmt.Errorf("issue a key: %d %s", e.Status, e.Error)
	}
	return key, nil
}

// RevokeKey revokes a key.
func (c Client) RevokeKey(ctx context.Context, connection string, key client.Key) history.Event {
	return c.call(ctx, 10*time.Second,
		history.Event{Op: history.KeyRevoke, Edge: c.Control.Name, Connection: connection, Key: key.APIKeyID},
		client.Request{Method: http.MethodDelete, URL: c.internal(connection, "api-keys/"+key.APIKeyID),
			Token: c.BackendToken},
		nil)
}

// EraseVisitor requests the erasure of a visitor.
func (c Client) EraseVisitor(ctx context.Context, connection, visitor string) history.Event {
	return c.call(ctx, 10*time.Second, history.Event{Op: history.Erase, Edge: c.Control.Name,
		Connection: connection, Visitor: visitor},
		client.Request{Method: http.MethodDelete, URL: c.internal(connection, "visitors/"+visitor),
			Token: c.ConnectorToken}, nil)
}

// DeliverWebhook delivers a webhook of the fake platform about a product or an order.
func (c Client) DeliverWebhook(ctx context.Context, connection, endpoint, product string,
	body []byte) history.Event {
	begin := history.Event{Op: history.Webhook, Edge: c.Control.Name, Connection: connection,
		External: product}
	return c.webhook(ctx, endpoint, begin, body)
}

// RequestRedaction delivers a webhook that asks to redact the buyer of an order. The visitor is the one who
// bought it, if any did.
func (c Client) RequestRedaction(ctx context.Context, connection, endpoint, order, visitor string,
	body []byte) history.Event {
	return c.webhook(ctx, endpoint, history.Event{Op: history.Webhook, Edge: c.Control.Name,
		Connection: connection, External: order, Redacts: []string{order}, Visitor: visitor}, body)
}

func (c Client) webhook(ctx context.Context, endpoint string, begin history.Event,
	body []byte) history.Event {
	api := client.Internal{HTTP: c.HTTP, BaseURL: c.Control.URL, ConnectorToken: c.ConnectorToken}
	return c.record(begin, func() client.Response {
		ctx, cancel := context.WithTimeout(ctx, c.timeout(10*time.Second))
		defer cancel()
		return api.DeliverWebhook(ctx, client.ConnectorProvider, endpoint, c.AppSecret, body)
	}, nil)
}

func (c Client) internal(connection, path string) string {
	return c.Control.URL + "/internal/v1/connections/" + connection + "/" + path
}

func (c Client) timeout(usual time.Duration) time.Duration {
	if c.Timeout > 0 {
		return c.Timeout
	}
	return usual
}

func (c Client) call(
	ctx context.Context, timeout time.Duration, begin history.Event, q client.Request, read func([]byte,
		*history.Event) error,
) history.Event {
	q.Timeout = c.timeout(timeout)
	return c.record(begin, func() client.Response { return client.Do(ctx, c.HTTP, q) }, read)
}

// record writes the begin, makes the call and writes its end. read takes the members of the end from the body
// of a 2xx.
func (c Client) record(begin history.Event, do func() client.Response,
	read func([]byte, *history.Event) error) history.Event {
	begin.Client, begin.Steady = c.Number, c.Steady
	call := c.Recorder.Invoke(begin)
	r := do()
	end := history.Event{Op: begin.Op, Kind: outcome(r), Status: r.Status, Key: begin.Key, Item: begin.Item,
		External: begin.External}
	if r.Header != nil {
		end.RequestID = r.Header.Get("X-Request-Id")
	}
	switch {
	case r.Err != nil:
		end.Error = r.Err.Error()
	case !r.OK():
		end.Code = r.Code()
	case read != nil:
		if err := read(r.Body, &end); err != nil {
			end.Kind, end.Error = history.Info, fmt.Sprintf("%v in the response %.200s", err, r.Body)
		}
	}
	c.Recorder.Complete(call, end)
	return end
}

// outcome tells what is known about the effect of a call.
func outcome(r client.Response) history.Kind {
	switch {
	case errors.Is(r.Err, syscall.ECONNREFUSED):
		return history.Fail
	case r.Err != nil:
		return history.Info
	case r.Status < 400:
		return history.OK
	case r.Status < 500:
		return history.Fail
	default:
		return history.Info
	}
}

// Final reports whether a client gains nothing by making the call again.
func Final(e history.Event) bool {
	return client.Response{Status: e.Status}.Final() && e.Status != 0 &&
		(e.Error == "" || e.Kind == history.OK)
}
