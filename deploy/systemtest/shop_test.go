package systemtest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"storefront.internal/deploy/democonnector/connector"
)

// shop is a storefront: a connection, its key, and what its connector needs.
type shop struct {
	t          *testing.T
	connection string
	key        string
	connector  connector.Config
	trace      string // header traceparent of its requests; "" sends none
}

type decision struct {
	ID     string `json:"decision_id"`
	Items  []item `json:"items"`
	Source string `json:"source"`
}

type item struct {
	ItemID    string `json:"item_id"`
	VariantID string `json:"variant_id"`
}

// signal is the wire form of one signal, as a client of ours would write it.
type signal struct {
	ID         string  `json:"signal_id,omitempty"`
	Type       string  `json:"type,omitempty"`
	OccurredAt string  `json:"occurred_at,omitempty"`
	DecisionID string  `json:"decision_id,omitempty"`
	ItemID     string  `json:"item_id,omitempty"`
	VariantID  string  `json:"variant_id,omitempty"`
	Position   *int    `json:"position,omitempty"`
	Quantity   *int    `json:"quantity,omitempty"`
	Visitor    visitor `json:"visitor,omitzero"`
}

type visitor struct {
	VisitorID string `json:"visitor_id,omitempty"`
	SessionID string `json:"session_id,omitempty"`
}

type answer struct {
	Status  int
	Code    string `json:"code"`
	Results []struct {
		Index    int    `json:"index"`
		SignalID string `json:"signal_id"`
		Status   string `json:"status"`
		Reason   string `json:"reason"`
	} `json:"results"`
	Took time.Duration
}

// count tells how many results have a status.
func (a answer) count(status string) int {
	n := 0
	for _, r := range a.Results {
		if r.Status == status {
			n++
		}
	}
	return n
}

// newShop makes a connection and a key by the real operations, and delivers a small catalog: an engine's item that is not in the
// connection's catalog is left out of every recommendation.
func (x *topology) newShop() *shop {
	x.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	c, err := x.api.CreateConnection(ctx, "store-"+randomHex(8))
	if err != nil {
		x.t.Fatal(err)
	}
	key, err := x.api.IssueKey(ctx, c.ConnectionID)
	if err != nil {
		x.t.Fatal(err)
	}
	s := &shop{t: x.t, connection: c.ConnectionID, key: key.Secret, connector: connector.Config{
		BaseURL: x.api.BaseURL, ConnectionID: c.ConnectionID, Token: c.Token, Batch: connector.MaxBatch,
	}}
	s.accepted(baseCatalog()...)
	if x.tells {
		eventually(x.t, 30*time.Second, "the engine hears of the catalog", func() error {
			if n := x.engine.Known(s.connection); n != baseProducts {
				return fmt.Errorf("it knows %d products", n)
			}
			return nil
		})
	}
	return s
}

const baseProducts = 10

// baseCatalog is what every shop begins with.
func baseCatalog() []connector.Observation {
	var all []connector.Observation
	for i := range baseProducts {
		all = append(all, product(fmt.Sprintf("base-%02d", i), 1, "Base"))
	}
	return all
}

// recommend asks an edge for a Decision.
func (s *shop) recommend(edge *node) decision {
	s.t.Helper()
	var d decision
	status, text, err := s.post(edge, "recommendations", []byte(`{"placement":"home"}`), 10*time.Second)
	if err != nil || status != http.StatusOK {
		s.t.Fatalf("recommendation: %d %s %v", status, text, err)
	}
	if err := json.Unmarshal(text, &d); err != nil {
		s.t.Fatal(err)
	}
	if len(d.Items) == 0 { // under load the fallback may come too late; items that the Decision did not hold are taken all the same
		d.Items = []item{{"itm_test", "var_test"}}
	}
	return d
}

// send delivers one batch. An error means that no answer came.
func (s *shop) send(edge *node, batch any, within time.Duration) (answer, error) {
	body, err := json.Marshal(map[string]any{"signals": batch})
	if err != nil {
		return answer{}, err
	}
	begun := time.Now()
	status, text, err := s.post(edge, "storefront-signals", body, within)
	a := answer{Status: status, Took: time.Since(begun)}
	if err != nil {
		return a, err
	}
	return a, json.Unmarshal(text, &a)
}

// must delivers a batch that has to be answered by a 202. A machine that has no breath left may answer 503 first, which a
// client takes for what it says: it keeps the batch and sends it again.
func (s *shop) must(edge *node, batch any) answer {
	s.t.Helper()
	for until := time.Now().Add(30 * time.Second); ; time.Sleep(time.Second) {
		a, err := s.send(edge, batch, 10*time.Second)
		switch {
		case err == nil && a.Status == http.StatusAccepted:
			return a
		case err != nil || a.Status != http.StatusServiceUnavailable || time.Now().After(until):
			s.t.Fatalf("signals: %+v %v", a, err)
		}
	}
}

// resend keeps the batch and sends it again, as a client does, until it is answered by a 202.
func (s *shop) resend(edge *node, batch any, within time.Duration) answer {
	s.t.Helper()
	var a answer
	eventually(s.t, within, "resend", func() (err error) {
		a, err = s.send(edge, batch, 10*time.Second)
		if err == nil && a.Status != http.StatusAccepted {
			err = fmt.Errorf("status %d %s", a.Status, a.Code)
		}
		return err
	})
	return a
}

func (s *shop) post(edge *node, operation string, body []byte, within time.Duration) (status int, text []byte, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	url := edge.url + "/v1/connections/" + s.connection + "/" + operation
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	r.Header.Set("Authorization", "Bearer "+s.key)
	r.Header.Set("Content-Type", "application/json")
	if s.trace != "" {
		r.Header.Set("Traceparent", s.trace)
	}
	res, err := wire.Do(r)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = res.Body.Close() }()
	text, err = io.ReadAll(res.Body)
	return res.StatusCode, text, err
}

var wire = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 128, IdleConnTimeout: 10 * time.Second}}

// cartBatch is n adds of one item each, all sound and new.
func cartBatch(d decision, n int) []signal {
	batch := make([]signal, n)
	now := time.Now().Add(-time.Minute)
	for i := range batch {
		item := d.Items[i%len(d.Items)]
		batch[i] = signal{
			ID: "sig_" + randomHex(16), Type: "add_to_cart", OccurredAt: stamp(now.Add(time.Duration(i) * time.Millisecond)),
			DecisionID: d.ID, ItemID: item.ItemID, VariantID: item.VariantID,
		}
	}
	return batch
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000000Z") }
