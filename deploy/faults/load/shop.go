package load

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"storefront.internal/deploy/faults/history"
)

// shop is a connection with what its clients know of it.
type shop struct {
	connection string
	token      string // of its connector; empty: a provider's
	endpoint   string // of its webhooks

	mu        sync.Mutex
	key       key
	retired   []retired // keys that were revoked, with the time of the answer
	first     decision  // from before the first fault
	decisions []decision
	items     []string           // ids of our own, for reads
	products  map[string]*counts // of a custom connection, by external id
}

type key struct{ id, secret string }

type retired struct {
	key
	at time.Time
}

// counts is what a connector knows of an entity.
type counts struct {
	entity   string
	external string
	revision int64 // the last that was used
}

type decision struct {
	id    string
	items []pick
}

type pick struct {
	Item    string `json:"item_id"`
	Variant string `json:"variant_id"`
}

const (
	baseProducts  = 25
	mostDecisions = 60
)

// openShop makes a custom connection with a key and a catalog.
func (l *Load) openShop(ctx context.Context, store string, random *rand.Rand) (*shop, error) {
	var made struct {
		Connection string `json:"connection_id"`
		Token      string `json:"token"`
	}
	a := l.wire.do(ctx, request{method: http.MethodPost, url: l.Control.URL + "/internal/v1/connections", token: l.ConnectorToken,
		body: map[string]string{"external_store_id": store}, within: 20 * time.Second})
	if !a.answered() {
		return nil, fmt.Errorf("create the connection: %s", a)
	}
	if err := json.Unmarshal(a.body, &made); err != nil {
		return nil, err
	}
	s := &shop{connection: made.Connection, token: made.Token, products: map[string]*counts{}}
	k, err := l.issue(ctx, 0, s)
	if err != nil {
		return nil, err
	}
	s.key = k
	var all []observation
	for i := range baseProducts {
		all = append(all, s.next("product", fmt.Sprintf("p%03d", i), random))
	}
	for i := range 4 {
		all = append(all, s.next("category", fmt.Sprintf("c%d", i), random))
	}
	if a := l.observe(ctx, 0, s, all); !a.answered() {
		return nil, fmt.Errorf("deliver the catalog: %s", a)
	}
	return s, nil
}

// openStore installs the provider's store and waits until it is loaded.
func (l *Load) openStore(ctx context.Context) error {
	m, err := l.install(ctx)
	if err != nil {
		return fmt.Errorf("install the store: %w", err)
	}
	l.merchant = m
	k, err := l.issue(ctx, 0, m.shop)
	if err != nil {
		return err
	}
	m.key = k
	l.shops = append(l.shops, m.shop)
	return nil
}

// credential is the key that the shop's pages carry now.
func (s *shop) credential() key {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.key
}

// decide answers a Decision that the shop's pages were served, or none.
func (s *shop) decide(random *rand.Rand) (decision, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.decisions) == 0 {
		return decision{}, false
	}
	return s.decisions[random.IntN(len(s.decisions))], true
}

func (s *shop) learn(d decision, random *rand.Rand) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.decisions) < mostDecisions {
		s.decisions = append(s.decisions, d)
		return
	}
	s.decisions[random.IntN(len(s.decisions))] = d
}

func (s *shop) item(random *rand.Rand) (string, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.items) == 0 {
		return "", false
	}
	return s.items[random.IntN(len(s.items))], true
}

func (s *shop) knows(item string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, known := range s.items {
		if known == item {
			return
		}
	}
	s.items = append(s.items, item)
}

// recommend asks an edge for a Decision (E1).
func (l *Load) recommend(ctx context.Context, client int, s *shop, edge Place, random *rand.Rand) {
	call := l.Recorder.Invoke(history.Event{Op: history.Recommend, Client: client, Edge: edge.Name, Connection: s.connection})
	a := l.wire.do(ctx, request{method: http.MethodPost, url: edge.URL + "/v1/connections/" + s.connection + "/recommendations",
		token: s.credential().secret, body: map[string]any{"placement": "home", "limit": 8}, within: 10 * time.Second})
	e := a.end(history.Recommend)
	var d struct {
		ID    string `json:"decision_id"`
		Items []pick `json:"items"`
	}
	if a.answered() {
		if err := json.Unmarshal(a.body, &d); err != nil || d.ID == "" {
			e.Kind, e.Error = history.Info, fmt.Sprintf("a recommendation that cannot be read: %.200s", a.body)
		} else {
			e.Decision = d.ID
			for _, i := range d.Items {
				e.Items = append(e.Items, i.Item)
			}
		}
	}
	l.Recorder.End(call, e)
	if e.Decision == "" {
		return
	}
	if len(d.Items) == 0 { // a page that got no items still signals: what the Decision did not hold is taken all the same
		d.Items = []pick{{Item: "itm_unlisted"}}
	}
	s.learn(decision{d.ID, d.Items}, random)
}
