package load

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"time"

	"storefront.internal/deploy/faults/history"
)

// observation is one element of operation 4's body.
type observation struct {
	Entity    string          `json:"entity"`
	External  string          `json:"external_id"`
	Revision  int64           `json:"revision"`
	Operation string          `json:"operation,omitempty"`
	Document  any             `json:"document,omitempty"`
	Raw       json.RawMessage `json:"raw,omitempty"`
}

// observes is a connector of all custom connections: it delivers changes, deletes, and what a confused connector sends: old
// revisions, the same one with other content, documents that break a rule.
func (l *Load) observes(ctx context.Context, client int, random *rand.Rand) {
	var custom []*shop
	for _, s := range l.shops {
		if s.token != "" {
			custom = append(custom, s)
		}
	}
	for l.rest(ctx, around(random, 400*time.Millisecond)) {
		s := custom[random.IntN(len(custom))]
		var all []observation
		for range 1 + random.IntN(8) {
			all = append(all, s.change(random))
		}
		for attempt := range mostAttempts {
			a := l.observe(ctx, client, s, all)
			if a.final() || !wait(ctx, around(random, min(time.Duration(attempt+1)*200*time.Millisecond, 3*time.Second))) {
				break
			}
		}
	}
}

// change is what the shop says next of one of its entities.
func (s *shop) change(random *rand.Rand) observation {
	names := make([]string, 0, baseProducts+4)
	s.mu.Lock()
	for name := range s.products {
		names = append(names, name)
	}
	s.mu.Unlock()
	slices.Sort(names)
	entity, external := "product", names[random.IntN(len(names))]
	if external[0] == 'c' {
		entity = "category"
	}
	o := s.next(entity, external, random)
	switch random.IntN(20) {
	case 0:
		o.Operation, o.Document = "delete", nil
	case 1: // old news
		o.Revision = max(1, o.Revision-1-random.Int64N(5))
	case 2: // breaks a rule: archived, and set aside
		o.Document = map[string]any{"item": map[string]any{"status": "active"}}
	}
	return o
}

// next counts an entity's revision up and writes its document.
func (s *shop) next(entity, external string, random *rand.Rand) observation {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.products[external]
	if c == nil {
		c = &counts{entity: entity, external: external}
		s.products[external] = c
	}
	c.revision += 1 + random.Int64N(3)
	title := fmt.Sprintf("%s at %d", external, c.revision)
	o := observation{Entity: entity, External: external, Revision: c.revision, Raw: json.RawMessage(fmt.Sprintf(`{"as":"sent", "title":%q,"n":%d}`, title, random.Uint32()))}
	if entity == "category" {
		o.Document = map[string]any{"name": map[string]string{"es": title}}
		return o
	}
	o.Document = map[string]any{
		"item": map[string]any{"title": map[string]string{"es": title}, "status": "active",
			"taxonomy": []any{map[string]string{"external_id": fmt.Sprintf("c%d", random.IntN(4))}}},
		"variants":     []any{map[string]any{"external_id": "v1", "price": map[string]string{"amount": "10.50", "currency": "ARS"}}},
		"availability": []any{map[string]any{"variant_external_id": "v1", "sellable": "yes", "quantity": random.IntN(9)}},
	}
	return o
}

// observe delivers one batch by operation 4, once. Every attempt at the same observations sends the same bytes.
func (l *Load) observe(ctx context.Context, client int, s *shop, all []observation) reply {
	begin := history.Event{Op: history.Observe, Client: client, Edge: l.Control.Name, Connection: s.connection}
	for _, o := range all {
		sum := sha256.Sum256(o.Raw)
		begin.Observations = append(begin.Observations, history.Observed{Entity: o.Entity, External: o.External, Operation: o.Operation,
			Revision: o.Revision, Raw: hex.EncodeToString(sum[:])})
	}
	call := l.Recorder.Invoke(begin)
	a := l.wire.do(ctx, request{method: http.MethodPost, url: l.Control.URL + "/internal/v1/connections/" + s.connection + "/observations",
		token: s.token, body: exact(all), within: 20 * time.Second})
	e := a.end(history.Observe)
	if a.answered() {
		var answer struct {
			Results []history.Outcome `json:"results"`
		}
		if err := json.Unmarshal(a.body, &answer); err != nil {
			e.Kind, e.Error = history.Info, fmt.Sprintf("an answer that cannot be read: %.200s", a.body)
		}
		e.Outcomes = answer.Results
		for i, o := range answer.Results {
			if o.EntityID != "" && i < len(all) && all[i].Entity == "product" {
				s.knows(o.EntityID)
			}
		}
	}
	l.Recorder.End(call, e)
	return a
}

// exact writes the body so that `raw` keeps its bytes, white space included: json.Marshal would compact them.
func exact(all []observation) []byte {
	out := []byte(`{"observations":[`)
	for i, o := range all {
		raw := o.Raw
		o.Raw = nil
		text, err := json.Marshal(o)
		if err != nil {
			panic(err) // of our own making
		}
		if i > 0 {
			out = append(out, ',')
		}
		out = append(append(append(out, text[:len(text)-1]...), `,"raw":`...), raw...)
		out = append(out, '}')
	}
	return append(out, `]}`...)
}
