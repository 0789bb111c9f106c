package load

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"

	"storefront.internal/deploy/faults/history"
	"storefront.internal/deploy/faults/recording"
	"storefront.internal/deploy/stack/client"
)

// connection is what the clients of a connection know.
type connection struct {
	id    string
	token string // of its connector; "" for a provider's connection

	mu        sync.Mutex
	key       client.Key
	retired   []client.Key    // keys that were revoked lately
	first     client.Decision // from before the first fault
	decisions []client.Decision
	items     []string
	entities  map[string]*entity // of a custom connection, by external id
}

// entity is an entity of a custom connection with its last revision.
type entity struct {
	kind     string
	revision int64
}

const (
	baseProducts   = 25
	baseCategories = 4
	keptDecisions  = 60
	keptKeys       = 4
)

// openCustom creates a custom connection with a key and a catalog.
func (l *Load) openCustom(ctx context.Context, shop string, random *rand.Rand) (*connection, error) {
	created, err := l.API.CreateConnection(ctx, shop)
	if err != nil {
		return nil, err
	}
	c := &connection{id: created.ConnectionID, token: created.Token, entities: map[string]*entity{}}
	if c.key, err = l.Client.IssueKey(ctx, c.id); err != nil {
		return nil, err
	}
	var all []recording.Observation
	for i := range baseProducts {
		all = append(all, c.nextRevision("product", fmt.Sprintf("p%03d", i), random))
	}
	for i := range baseCategories {
		all = append(all, c.nextRevision("category", fmt.Sprintf("c%d", i), random))
	}
	if e := l.observe(ctx, l.Client, c, all); e.Kind != history.OK {
		return nil, fmt.Errorf("deliver the catalog: %d %s", e.Status, e.Error)
	}
	return c, nil
}

// recommend asks an edge for a Decision and keeps it.
func (l *Load) recommend(ctx context.Context, client recording.Client, c *connection, edge recording.Endpoint,
	random *rand.Rand) {
	d, err := client.Recommend(ctx, edge, c.id, c.currentKey())
	if err == nil {
		c.keep(d, random)
	}
}

func (c *connection) visitor(signal string) string { return "vis_" + history.Canary(c.id, signal) }

func (c *connection) currentKey() client.Key {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.key
}

func (c *connection) replaceKey(key client.Key) (old client.Key) {
	c.mu.Lock()
	defer c.mu.Unlock()
	old, c.key = c.key, key
	return old
}

func (c *connection) retire(key client.Key) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.retired = append(c.retired, key)
	c.retired = c.retired[max(0, len(c.retired)-keptKeys):]
}

func (c *connection) retiredKeys() []client.Key {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.retired)
}

// decision returns one of the Decisions that the connection's pages received.
func (c *connection) decision(random *rand.Rand) (client.Decision, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return pick(c.decisions, random)
}

func (c *connection) keep(d client.Decision, random *rand.Rand) {
	// its page sends signals all the same: an item that is not in the Decision is accepted
	if len(d.Items) == 0 {
		d.Items = []client.RecommendedItem{{ItemID: "itm_unlisted"}}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.decisions) < keptDecisions {
		c.decisions = append(c.decisions, d)
		return
	}
	c.decisions[random.IntN(len(c.decisions))] = d
}

func (c *connection) item(random *rand.Rand) (string, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return pick(c.items, random)
}

func (c *connection) addItem(item string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !slices.Contains(c.items, item) {
		c.items = append(c.items, item)
	}
}

func pick[T any](all []T, random *rand.Rand) (one T, ok bool) {
	if len(all) == 0 {
		return one, false
	}
	return all[random.IntN(len(all))], true
}
