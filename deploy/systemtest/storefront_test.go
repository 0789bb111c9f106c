package systemtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"storefront.internal/deploy/democonnector/connector"
	"storefront.internal/deploy/stack"
	"storefront.internal/deploy/stack/client"
)

// storefront calls the edges for one connection, and its connector calls control. Each call names the edge.
type storefront struct {
	client.Storefront
	t         *testing.T
	connector connector.Config
}

// response is the response to a batch of signals.
type response struct {
	Status  int
	Code    string
	Results []client.Result
	Took    time.Duration
}

// count is the number of results with a status.
func (a response) count(status string) int {
	n := 0
	for _, r := range a.Results {
		if r.Status == status {
			n++
		}
	}
	return n
}

// newStorefront makes a connection and a key by the real operations, and delivers a small catalog: an item of
// the engine's that is not in the connection's catalog is left out of every recommendation.
func (x *deployment) newStorefront() *storefront {
	x.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	c, err := x.api.CreateConnection(ctx, "store-"+randomHex(8))
	check(x.t, err)
	key, err := x.api.IssueKey(ctx, c.ConnectionID)
	check(x.t, err)
	s := &storefront{t: x.t, Storefront: client.Storefront{ConnectionID: c.ConnectionID, Key: key.Secret},
		connector: connector.Config{
			BaseURL: x.api.BaseURL, ConnectionID: c.ConnectionID, Token: c.Token, Batch: connector.MaxBatch,
		}}
	s.deliverAccepted(baseCatalog()...)
	if x.hasRelay {
		eventually(x.t, 30*time.Second, "the engine knows the catalog", func() error {
			if n := x.engine.Known(s.ConnectionID); n != baseProducts {
				return fmt.Errorf("it knows %d products", n)
			}
			return nil
		})
	}
	return s
}

const baseProducts = 10

// baseCatalog is the catalog with which every storefront begins.
func baseCatalog() []connector.Observation {
	var all []connector.Observation
	for i := range baseProducts {
		all = append(all, product(fmt.Sprintf("base-%02d", i), 1, "Base"))
	}
	return all
}

// at is the public surface of an edge.
func (s *storefront) at(edge *stack.Process) client.Storefront {
	c := s.Storefront
	c.BaseURL, c.HTTP = edge.URL, httpClient
	return c
}

// recommend asks an edge for a Decision; visitors are optional.
func (s *storefront) recommend(edge *stack.Process, of ...client.Visitor) client.Decision {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	body := map[string]any{"placement": "home"}
	for _, v := range of {
		body["visitor"] = v
	}
	d, err := s.at(edge).Recommend(ctx, body)
	if err != nil {
		s.t.Fatalf("recommendation: %v", err)
	}
	// under load the fallback may come too late; signals of other items than the Decision's are taken too
	if len(d.Items) == 0 {
		d.Items = []client.RecommendedItem{{ItemID: "itm_test", VariantID: "var_test"}}
	}
	return d
}

// send sends one batch. An error means that no response came.
func (s *storefront) send(edge *stack.Process, batch any, limit time.Duration) (response, error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	began := time.Now()
	r := s.at(edge).RecordSignals(ctx, batch)
	a := response{Status: r.Status, Code: r.Code(), Took: time.Since(began)}
	if r.Err == nil && r.OK() {
		r.Err = json.Unmarshal(r.Body, &a)
	}
	return a, r.Err
}

// must sends a batch until it is answered by a 202. Before that only a 503 is allowed, which a machine under
// load may answer and after which a client sends the batch again.
func (s *storefront) must(edge *stack.Process, batch any) response {
	s.t.Helper()
	for until := time.Now().Add(3 * time.Minute); ; time.Sleep(time.Second) {
		a, err := s.send(edge, batch, time.Minute)
		switch {
		case err == nil && a.Status == http.StatusAccepted:
			return a
		case err != nil || a.Status != http.StatusServiceUnavailable || time.Now().After(until):
			s.t.Fatalf("signals: %+v %v", a, err)
		}
	}
}

// resend sends a batch again, as a client does, until it is answered by a 202.
func (s *storefront) resend(edge *stack.Process, batch any, limit time.Duration) (a response) {
	s.t.Helper()
	eventually(s.t, limit, "resend", func() (err error) {
		a, err = s.send(edge, batch, 10*time.Second)
		if err == nil && a.Status != http.StatusAccepted {
			err = fmt.Errorf("status %d %s", a.Status, a.Code)
		}
		return err
	})
	return a
}

var httpClient = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 128,
	IdleConnTimeout: 10 * time.Second}}

// cartBatch is n valid new signals that each add one item to the cart.
func cartBatch(d client.Decision, n int) []client.Signal {
	batch := make([]client.Signal, n)
	now := time.Now().Add(-time.Minute)
	for i := range batch {
		item := d.Items[i%len(d.Items)]
		batch[i] = client.Signal{
			ID: "sig_" + randomHex(16), Type: "add_to_cart", DecisionID: d.ID, ItemID: item.ItemID,
			VariantID:  item.VariantID,
			OccurredAt: client.Timestamp(now.Add(time.Duration(i) * time.Millisecond)),
		}
	}
	return batch
}

// statusIs compares the status of a response.
func statusIs(r client.Response, want int) error {
	if r.Err == nil && r.Status != want {
		return errors.New("not " + http.StatusText(want) + ": " + r.String())
	}
	return r.Err
}
