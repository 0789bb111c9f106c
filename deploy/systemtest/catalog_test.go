package systemtest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"storefront.internal/deploy/democonnector/connector"
	"storefront.internal/deploy/demoengine/engine"
	"storefront.internal/deploy/stack"
)

// product is a valid observation of a product in the given categories.
func product(id string, revision int64, title string, categories ...string) connector.Observation {
	taxonomy := []any{}
	for _, c := range categories {
		taxonomy = append(taxonomy, map[string]string{"external_id": c})
	}
	document := map[string]any{
		"item": map[string]any{"title": map[string]string{"es": title}, "status": "active",
			"taxonomy": taxonomy},
		"variants": []any{map[string]any{"external_id": "v1",
			"price": map[string]string{"amount": "10.50", "currency": "ARS"}}},
		"availability": []any{map[string]any{"variant_external_id": "v1", "sellable": "yes", "quantity": 3}},
	}
	return connector.Observation{Entity: connector.Product, ExternalID: id, Revision: revision,
		Document: document,
		Raw:      map[string]any{"as sent": title}}
}

func category(id string, revision int64, name string) connector.Observation {
	return connector.Observation{Entity: connector.Category, ExternalID: id, Revision: revision,
		Document: map[string]any{"name": map[string]string{"es": name}}}
}

func deleted(entity, id string, revision int64) connector.Observation {
	return connector.Observation{Entity: entity, ExternalID: id, Revision: revision,
		Operation: connector.Delete}
}

// deliver delivers observations as a connector does.
func (s *storefront) deliver(all ...connector.Observation) []connector.Result {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	results, err := connector.New(s.connector).Deliver(ctx, all)
	if err != nil {
		s.t.Fatalf("deliver: %v", err)
	}
	return results
}

// deliverAccepted delivers observations that must all be accepted.
func (s *storefront) deliverAccepted(all ...connector.Observation) []connector.Result {
	s.t.Helper()
	results := s.deliver(all...)
	for i, r := range results {
		if r.Status != connector.Accepted {
			s.t.Fatalf("%s %s: %+v", all[i].Entity, all[i].ExternalID, r)
		}
	}
	return results
}

// itemAnswer is what a test reads of the response to getCatalogItem.
type itemAnswer struct {
	Status   int
	ETag     string
	Code     string `json:"code"`
	Revision int64  `json:"refresh_revision"`
	Item     struct {
		ItemID     string            `json:"item_id"`
		Connection string            `json:"connection_id"`
		Title      map[string]string `json:"title"`
		Taxonomy   []struct {
			ExternalID string            `json:"external_id"`
			Name       map[string]string `json:"name"`
		} `json:"taxonomy"`
	} `json:"item"`
	Variants []struct {
		Price struct{ Amount, Currency string }
	}
	Availability []struct{ Quantity int }
	body         []byte
}

// read asks an edge for an item; with an entity tag, only when it differs.
func (s *storefront) read(edge *stack.Process, id, tag string) (itemAnswer, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, edge.URL+"/v1/catalog/items/"+id, nil)
	if err != nil {
		return itemAnswer{}, err
	}
	r.Header.Set("Authorization", "Bearer "+s.Key)
	if tag != "" {
		r.Header.Set("If-None-Match", tag)
	}
	res, err := httpClient.Do(r)
	if err != nil {
		return itemAnswer{}, err
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	got := itemAnswer{Status: res.StatusCode, ETag: res.Header.Get("ETag"), body: text}
	if err != nil || len(text) == 0 {
		return got, err
	}
	return got, json.Unmarshal(text, &got)
}

// awaitItem waits until an edge answers as wanted.
func (s *storefront) awaitItem(t *testing.T, edge *stack.Process, id, what string,
	want func(itemAnswer) bool) itemAnswer {
	t.Helper()
	var got itemAnswer
	eventually(t, 15*time.Second, what, func() (err error) {
		if got, err = s.read(edge, id, ""); err == nil && !want(got) {
			err = fmt.Errorf("answer %d %s", got.Status, got.body)
		}
		return err
	})
	return got
}

func titled(title string) func(itemAnswer) bool {
	return func(i itemAnswer) bool { return i.Status == http.StatusOK && i.Item.Title["es"] == title }
}

func gone(i itemAnswer) bool { return i.Status == http.StatusNotFound && i.Code == "not_found" }

// awaitRead waits until every accepted observation was delivered to the engine and the engine has read its
// snapshot.
func (x *deployment) awaitRead(t *testing.T, results ...connector.Result) {
	t.Helper()
	eventually(t, 30*time.Second, "envelopes", func() error {
		read := map[string]bool{}
		for _, r := range x.engine.Readings(0) {
			read[r.ObservationID] = read[r.ObservationID] || r.Result == engine.SnapshotRead
		}
		for _, r := range results {
			if !read[r.ObservationID] {
				return fmt.Errorf("%s of %s is not read", r.ObservationID, r.EntityID)
			}
		}
		return nil
	})
}

// checkSnapshots holds in every scenario: the engine could read all that was delivered to it at that moment,
// with equal digests.
func (x *deployment) checkSnapshots() {
	for _, r := range x.engine.Readings(0) {
		if r.Result == engine.SnapshotMissing || r.Result == engine.SnapshotMismatch {
			x.t.Errorf("snapshot of %s %s revision %d: %s %s", r.Entity, r.ObservationID, r.Revision,
				r.Result, r.Detail)
		}
	}
}
