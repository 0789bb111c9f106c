package scenario

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"storefront.internal/deploy/fakeprovider/catalogue"
	"storefront.internal/deploy/faults/history"
	"storefront.internal/deploy/faults/load"
	"storefront.internal/deploy/faults/recording"
	"storefront.internal/deploy/faults/topology"
	"storefront.internal/deploy/stack/client"
	"storefront.internal/shared/backoff"
)

// Connection is a custom connection with one key.
type Connection struct {
	ID  string
	Key client.Key

	token  string // of its connector
	client recording.Client
	api    client.Internal
}

func (s *Env) newConnection(ctx context.Context) (*Connection, error) {
	created, err := s.API().CreateConnection(ctx, "directed-"+randomName())
	if err != nil {
		return nil, err
	}
	c := &Connection{ID: created.ConnectionID, token: created.Token, client: s.Client(), api: s.API()}
	c.Key, err = c.api.IssueKey(ctx, c.ID)
	return c, err
}

func randomName() string {
	b := make([]byte, 12)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}

// Recommend asks an edge for a Decision and returns its id.
func (c *Connection) Recommend(ctx context.Context, edge recording.Endpoint) (string, error) {
	d, err := c.client.Recommend(ctx, edge, c.ID, c.Key)
	return d.ID, err
}

// Signal makes a valid signal.
func (c *Connection) Signal(decision, kind, item string) recording.Signal {
	s := recording.Signal{Signal: client.Signal{ID: "sig_" + randomName(), Type: kind, DecisionID: decision,
		ItemID:     item,
		OccurredAt: client.Timestamp(time.Now().Add(-time.Second))}}
	s.Visitor.VisitorID = "vis_" + history.Canary(c.ID, s.ID)
	return s
}

// AddToCart makes n signals that add one item each to the cart.
func (c *Connection) AddToCart(decision string, n int) []recording.Signal {
	batch := make([]recording.Signal, n)
	for i := range batch {
		batch[i] = c.Signal(decision, "add_to_cart", fmt.Sprintf("itm_%02d", i))
	}
	return batch
}

// Send sends a batch once.
func (c *Connection) Send(ctx context.Context, edge recording.Endpoint,
	batch []recording.Signal) history.Event {
	return c.SendWithKey(ctx, c.Key, edge, batch)
}

// SendWithKey sends a batch once with another key.
func (c *Connection) SendWithKey(
	ctx context.Context, key client.Key, edge recording.Endpoint, batch []recording.Signal,
) history.Event {
	return c.client.RecordSignals(ctx, edge, c.ID, key, batch)
}

// SendUntilAccepted sends a batch until the response is 202.
func (c *Connection) SendUntilAccepted(ctx context.Context, edge recording.Endpoint,
	batch []recording.Signal) error {
	for {
		e := c.Send(ctx, edge, batch)
		if e.Kind == history.OK {
			return nil
		}
		if err := backoff.Sleep(ctx, 200*time.Millisecond); err != nil {
			return fmt.Errorf("a batch was never accepted: %d %s: %w", e.Status, e.Error, err)
		}
	}
}

// SendOfVisitor sends a signal of a visitor who is erased later.
func (c *Connection) SendOfVisitor(ctx context.Context, edge recording.Endpoint, decision, visitor string) {
	s := c.Signal(decision, "impression", "")
	s.Visitor.VisitorID, s.VisitorErased = visitor, true
	c.Send(ctx, edge, []recording.Signal{s})
}

// EraseVisitor requests the erasure of a visitor.
func (c *Connection) EraseVisitor(ctx context.Context, visitor string) error {
	if e := c.client.EraseVisitor(ctx, c.ID, visitor); e.Kind != history.OK {
		return fmt.Errorf("the visitor was not erased: %d %s", e.Status, e.Error)
	}
	return nil
}

// Observe delivers a product at a revision and returns its item id.
func (c *Connection) Observe(ctx context.Context, external string, revision int64, raw string) (item string,
	err error) {
	e := c.client.DeliverObservations(ctx, c.ID, c.token,
		[]recording.Observation{product(external, revision, raw)})
	if len(e.ObservationResults) != 1 || e.ObservationResults[0].EntityID == "" {
		return "", fmt.Errorf("deliver an observation: %d %s %v", e.Status, e.Error, e.ObservationResults)
	}
	return e.ObservationResults[0].EntityID, nil
}

func product(external string, revision int64, raw string) recording.Observation {
	return recording.Observation{
		Entity: "product", ExternalID: external, Revision: revision, Raw: json.RawMessage(raw),
		Document: map[string]any{
			"item": map[string]any{"title": map[string]string{"es": fmt.Sprintf("v%d", revision)},
				"status": "active"},
			"variants":     []any{map[string]string{"external_id": "v1"}},
			"availability": []any{map[string]string{"variant_external_id": "v1", "sellable": "yes"}},
		},
	}
}

// ObserveInvalid delivers a product that breaks a rule.
func (c *Connection) ObserveInvalid(ctx context.Context, external string, revision int64) error {
	o := product(external, revision, `{"n":1}`)
	o.Document = map[string]any{"item": map[string]any{"status": "active"}}
	e := c.client.DeliverObservations(ctx, c.ID, c.token, []recording.Observation{o})
	if len(e.ObservationResults) != 1 || e.ObservationResults[0].Status != "quarantined" {
		return fmt.Errorf("an invalid document: %d %s %v", e.Status, e.Error, e.ObservationResults)
	}
	return nil
}

// GetItem reads an item from an edge.
func (c *Connection) GetItem(ctx context.Context, edge recording.Endpoint, item string) history.Event {
	return c.client.GetItem(ctx, edge, c.ID, c.Key, item)
}

// IssueKey issues another key.
func (c *Connection) IssueKey(ctx context.Context) (client.Key, error) {
	return c.api.IssueKey(ctx, c.ID)
}

// RevokeKey revokes a key.
func (c *Connection) RevokeKey(ctx context.Context, key client.Key) error {
	if e := c.client.RevokeKey(ctx, c.ID, key); e.Kind != history.OK {
		return fmt.Errorf("the key was not revoked: %d %s", e.Status, e.Error)
	}
	return nil
}

// Merchant is the shop at the fake provider, shared by all scenarios. Connection is empty until a scenario
// installs it.
type Merchant struct {
	Connection, endpoint string
	orders               int
}

// NextOrder returns the id of an order that no scenario has used.
func (m *Merchant) NextOrder() string {
	m.orders++
	return strconv.Itoa(catalogue.FirstOrder + m.orders)
}

// Shop returns the connection of the shop, without a key.
func (m *Merchant) Shop(s *Env) *Connection {
	return &Connection{ID: m.Connection, client: s.Client(), api: s.API()}
}

// NewKey issues the key of the connection.
func (c *Connection) NewKey(ctx context.Context) (err error) {
	c.Key, err = c.IssueKey(ctx)
	return err
}

// Batch makes a batch of signals.
func (c *Connection) Batch(signals ...recording.Signal) []recording.Signal { return signals }

// Open installs the shop, if it is not installed, and waits until its catalog is loaded.
func (m *Merchant) Open(ctx context.Context, s *Env) error {
	if m.Connection != "" {
		return nil
	}
	if err := m.Install(ctx, s); err != nil {
		return err
	}
	_, err := s.API().AwaitCatalog(ctx, m.Connection)
	return err
}

// Install installs the shop, which can be repeated.
func (m *Merchant) Install(ctx context.Context, s *Env) error {
	installed, err := s.API().OpenInstallation(ctx, load.Installation(s.Settings.AppID, topology.ShopID))
	if err == nil {
		m.Connection, m.endpoint = installed.ConnectionID, installed.EndpointID
	}
	return err
}

// AnnounceOrder delivers the webhook of a new order.
func (m *Merchant) AnnounceOrder(ctx context.Context, s *Env, order string) error {
	e := s.Client().DeliverWebhook(ctx, m.Connection, m.endpoint, order,
		load.WebhookBody(topology.ShopID, "order/created", order))
	if e.Status != http.StatusAccepted {
		return fmt.Errorf("the webhook was answered %d %s", e.Status, e.Error)
	}
	return nil
}

// Redact requests the redaction of the buyer of an order. The visitor is the one who bought it, if any did.
func (m *Merchant) Redact(ctx context.Context, s *Env, order, email, visitor string) error {
	e := s.Client().RequestRedaction(ctx, m.Connection, m.endpoint, order, visitor,
		load.RedactionBody(topology.ShopID, order, email))
	if e.Status != http.StatusAccepted {
		return fmt.Errorf("the request was answered %d %s", e.Status, e.Error)
	}
	return nil
}

// Rename changes the name of a product and delivers the webhook, whose bytes are always the same.
func (m *Merchant) Rename(ctx context.Context, s *Env, name string) error {
	product := strconv.Itoa(catalogue.FirstProduct)
	patch := client.Request{Method: http.MethodPut, URL: s.Provider.URL + "/debug/products/" + product,
		Body: map[string]any{"name": map[string]string{"es": name, "pt": name, "en": name}}}
	if err := client.Call(ctx, nil, patch, nil); err != nil {
		return err
	}
	e := s.Client().DeliverWebhook(ctx, m.Connection, m.endpoint, product,
		load.WebhookBody(topology.ShopID, "product/updated", product))
	if e.Status != http.StatusAccepted {
		return fmt.Errorf("the webhook was answered %d %s", e.Status, e.Error)
	}
	return nil
}
