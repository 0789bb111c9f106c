// Package direct is the clients of a directed run: one shop whose calls are made one by one, each at the edge and at the moment
// that a scenario names, and written down as package load writes its own down. It judges nothing and draws nothing by lot.
package direct

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"crypto/rand"
	"crypto/sha256"

	"storefront.internal/deploy/faults/history"
	"storefront.internal/deploy/local/services"
)

// Place is a process that can be called.
type Place struct{ Name, URL string }

// Shop is a custom connection with one key.
type Shop struct {
	Connection string
	Key        services.Key

	api      services.Internal
	token    string // of its connector
	recorder *history.Recorder
	client   *http.Client
}

// Open makes a connection and a key.
func Open(ctx context.Context, api services.Internal, r *history.Recorder) (*Shop, error) {
	c, err := api.CreateConnection(ctx, "directed-"+name())
	if err != nil {
		return nil, err
	}
	s := &Shop{Connection: c.ConnectionID, api: api, token: c.Token, recorder: r, client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}}
	s.Key, err = api.IssueKey(ctx, c.ConnectionID)
	return s, err
}

func name() string {
	b := make([]byte, 8)
	_, _ = rand.Read(b)
	return hex.EncodeToString(b)
}

// Recommend asks an edge for a Decision.
func (s *Shop) Recommend(ctx context.Context, edge Place) (string, error) {
	call := s.recorder.Invoke(history.Event{Op: history.Recommend, Edge: edge.Name, Connection: s.Connection})
	end, body := s.do(ctx, history.Recommend, http.MethodPost, edge.URL+"/v1/connections/"+s.Connection+"/recommendations", s.Key.Secret, []byte(`{"placement":"home"}`))
	var d struct {
		ID string `json:"decision_id"`
	}
	if end.Kind == history.OK && json.Unmarshal(body, &d) == nil {
		end.Decision = d.ID
	}
	s.recorder.End(call, end)
	if d.ID == "" {
		return "", fmt.Errorf("no Decision: %d %s", end.Status, end.Error)
	}
	return d.ID, nil
}

// Signal makes a sound signal of a type about an item.
func (s *Shop) Signal(decision, kind, item string) history.Sent {
	id := "sig_" + name() + name()
	return history.Sent{ID: id, Type: kind, Decision: decision, Item: item, Canary: history.Canary(s.Connection, id),
		OccurredAt: time.Now().UTC().Add(-time.Second).Format(time.RFC3339Nano)}
}

// Adds makes n signals that each add one of an item to the cart.
func (s *Shop) Adds(decision string, n int) []history.Sent {
	batch := make([]history.Sent, n)
	for i := range batch {
		batch[i] = s.Signal(decision, "add_to_cart", fmt.Sprintf("itm_%02d", i))
	}
	return batch
}

// Send sends a batch once and answers how it ended.
func (s *Shop) Send(ctx context.Context, edge Place, batch []history.Sent) history.Event {
	return s.SendWith(ctx, s.Key, edge, batch)
}

// SendWith sends a batch with another key.
func (s *Shop) SendWith(ctx context.Context, key services.Key, edge Place, batch []history.Sent) history.Event {
	return s.send(ctx, key, edge, batch, "")
}

// Visit sends a signal of a visitor who may be forgotten: it has no canary.
func (s *Shop) Visit(ctx context.Context, edge Place, decision, visitor string) history.Event {
	one := s.Signal(decision, "impression", "")
	one.Canary, one.Forgotten = "", true
	return s.send(ctx, s.Key, edge, []history.Sent{one}, visitor)
}

// Forget asks for the erasure of a visitor (E9).
func (s *Shop) Forget(ctx context.Context, visitor string) error {
	end, _ := s.do(ctx, history.Probe, http.MethodDelete, s.api.BaseURL+"/internal/v1/connections/"+s.Connection+"/visitors/"+visitor, s.api.ConnectorToken, nil)
	if end.Kind != history.OK {
		return fmt.Errorf("the erasure was not taken: %d %s", end.Status, end.Error)
	}
	return nil
}

func (s *Shop) send(ctx context.Context, key services.Key, edge Place, batch []history.Sent, visitor string) history.Event {
	all := make([]map[string]any, len(batch))
	for i, b := range batch {
		all[i] = wire(b)
		if visitor != "" {
			all[i]["visitor"] = map[string]string{"visitor_id": visitor}
		}
	}
	body, err := json.Marshal(map[string]any{"signals": all})
	if err != nil {
		return history.Event{Kind: history.Fail, Error: err.Error()}
	}
	call := s.recorder.Invoke(history.Event{Op: history.Signals, Edge: edge.Name, Connection: s.Connection, Key: key.APIKeyID, Signals: batch})
	end, answer := s.do(ctx, history.Signals, http.MethodPost, edge.URL+"/v1/connections/"+s.Connection+"/storefront-signals", key.Secret, body)
	var told struct {
		Results []history.Result `json:"results"`
	}
	if end.Kind == history.OK {
		if err := json.Unmarshal(answer, &told); err != nil {
			end.Kind, end.Error = history.Info, err.Error()
		}
		end.Results = told.Results
	}
	s.recorder.End(call, end)
	return end
}

func wire(b history.Sent) map[string]any {
	w := map[string]any{"signal_id": b.ID, "type": b.Type, "decision_id": b.Decision, "occurred_at": b.OccurredAt}
	for name, value := range map[string]string{"item_id": b.Item, "variant_id": b.Variant} {
		if value != "" {
			w[name] = value
		}
	}
	if b.Quantity != nil {
		w["quantity"] = *b.Quantity
	}
	if b.Canary != "" {
		w["visitor"] = map[string]string{"visitor_id": "vis_" + b.Canary}
	}
	return w
}

// Deliver sends a batch again and again, as a client does that keeps what was not taken, until it is answered by a 202.
func (s *Shop) Deliver(ctx context.Context, edge Place, batch []history.Sent) error {
	for {
		end := s.Send(ctx, edge, batch)
		if end.Kind == history.OK {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("a batch was never taken: %d %s: %w", end.Status, end.Error, ctx.Err())
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// Observe delivers one product at a revision (operation 4), and answers its item's id.
func (s *Shop) Observe(ctx context.Context, control Place, external string, revision int64, raw string) (item string, err error) {
	sum := sha256.Sum256([]byte(raw))
	begin := history.Event{Op: history.Observe, Edge: control.Name, Connection: s.Connection, Observations: []history.Observed{
		{Entity: "product", External: external, Revision: revision, Raw: hex.EncodeToString(sum[:])}}}
	body := fmt.Sprintf(`{"observations":[{"entity":"product","external_id":%q,"revision":%d,"raw":%s,"document":{"item":{"title":{"es":"v%d"},"status":"active"},`+
		`"variants":[{"external_id":"v1"}],"availability":[{"variant_external_id":"v1","sellable":"yes"}]}}]}`, external, revision, raw, revision)
	call := s.recorder.Invoke(begin)
	end, answer := s.do(ctx, history.Observe, http.MethodPost, s.api.BaseURL+"/internal/v1/connections/"+s.Connection+"/observations", s.token, []byte(body))
	var told struct {
		Results []history.Outcome `json:"results"`
	}
	if end.Kind == history.OK {
		if err = json.Unmarshal(answer, &told); err == nil && len(told.Results) == 1 {
			end.Outcomes, item = told.Results, told.Results[0].EntityID
		}
	}
	s.recorder.End(call, end)
	if item == "" {
		return "", fmt.Errorf("observation: %d %s %w", end.Status, end.Error, err)
	}
	return item, nil
}

// Read reads an item from an edge (operation 2).
func (s *Shop) Read(ctx context.Context, edge Place, item string) history.Event {
	call := s.recorder.Invoke(history.Event{Op: history.Item, Edge: edge.Name, Connection: s.Connection, Item: item, Key: s.Key.APIKeyID})
	end, answer := s.do(ctx, history.Item, http.MethodGet, edge.URL+"/v1/catalog/items/"+item, s.Key.Secret, nil)
	var told struct {
		Revision int64 `json:"refresh_revision"`
	}
	if end.Kind == history.OK && json.Unmarshal(answer, &told) == nil {
		end.Revision = told.Revision
	}
	end.Item = item
	s.recorder.End(call, end)
	return end
}

// Issue makes another key.
func (s *Shop) Issue(ctx context.Context) (services.Key, error) {
	return s.api.IssueKey(ctx, s.Connection)
}

// Revoke ends a key (E4).
func (s *Shop) Revoke(ctx context.Context, key services.Key) error {
	call := s.recorder.Invoke(history.Event{Op: history.KeyRevoke, Connection: s.Connection, Key: key.APIKeyID})
	end, _ := s.do(ctx, history.KeyRevoke, http.MethodDelete, s.api.BaseURL+"/internal/v1/connections/"+s.Connection+"/api-keys/"+key.APIKeyID, s.api.BackendToken, nil)
	s.recorder.End(call, end)
	if end.Kind != history.OK {
		return errors.New("the key was not revoked: " + end.Error)
	}
	return nil
}
