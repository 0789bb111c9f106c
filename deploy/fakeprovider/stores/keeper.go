// Package stores keeps a provider's stores: each is made on first sight, with its documents, subscriptions, rate limit and the state
// of the installation. It owns what the three providers have in common behind their debug routes, and knows no wire format.
package stores

import (
	"encoding/json"
	"errors"
	"hash/fnv"
	"strconv"
	"sync"
	"time"

	"storefront.internal/deploy/fakeprovider/behaviour"
	"storefront.internal/deploy/fakeprovider/bucket"
	"storefront.internal/deploy/fakeprovider/docs"
	"storefront.internal/deploy/fakeprovider/hooks"
)

// Config is what every provider's fake takes.
type Config struct {
	Seed        uint64
	Products    int
	Categories  int
	Orders      int
	AppSecret   string
	StrictURLs  bool // delivery URLs must be what the real provider takes
	Unthrottled bool
	Plan        int // a plan of so many times the calls; 0 is the cheapest, 1
	Sender      *hooks.Sender
	Now         func() time.Time
	FirstStore  string // known from the start; debug requests that name no store reach at least this
	// Retries stands in for the provider's waits between attempts at a delivery; nil keeps them.
	Retries []time.Duration
}

// Grants is what a plan has of a limit.
func (c Config) Grants(limit float64) float64 { return limit * float64(max(c.Plan, 1)) }

// Frozen is the store's documents as they are now, for whoever reads them in the background.
func (s *Store) Frozen() *Store {
	frozen := &Store{ID: s.ID, Tables: make(map[string]*docs.Table, len(s.Tables))}
	for kind, table := range s.Tables {
		frozen.Tables[kind] = table.Clone()
	}
	return frozen
}

// Kinds of documents.
const (
	Products   = "products"
	Categories = "categories"
	Orders     = "orders"
)

// Store is one shop.
type Store struct {
	ID     string
	Access Access
	Hooks  hooks.Set
	Tables map[string]*docs.Table
	Bucket *bucket.Bucket
}

// Faults of a debug request.
var (
	ErrNotFound = errors.New("not found")
	ErrTopic    = errors.New("the provider has no such topic")
	ErrNobody   = errors.New("nobody is subscribed to this topic")
)

// Keeper is the stores of one provider.
type Keeper struct {
	Conduct behaviour.Switch
	name    func(string) string
	open    func(id string) *Store
	now     func() time.Time

	mu     sync.Mutex
	stores map[string]*Store
	order  []string
}

// NewKeeper makes a keeper whose stores are opened by a provider, the first one at once. Name makes one of the several ways that a
// store may be called.
func NewKeeper(c Config, name func(string) string, open func(id string) *Store) *Keeper {
	k := &Keeper{name: name, open: open, now: c.Now, stores: map[string]*Store{}}
	k.Of(c.FirstStore)
	return k
}

// Of answers a store, made when it was never seen.
func (k *Keeper) Of(id string) *Store {
	id = k.name(id)
	k.mu.Lock()
	defer k.mu.Unlock()
	s, ok := k.stores[id]
	if !ok {
		s = k.open(id)
		k.stores[id] = s
		k.order = append(k.order, id)
	}
	return s
}

// Stores are the ids of the stores that were seen, the first one first.
func (k *Keeper) Stores() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return append([]string{}, k.order...)
}

// Behave replaces how the API answers.
func (k *Keeper) Behave(b behaviour.Behaviour) { k.Conduct.Set(b) }

// SetState changes the state of a store's installation.
func (k *Keeper) SetState(store string, s State) { k.Of(store).Access.Set(s) }

// Subscriptions are a store's hooks.
func (k *Keeper) Subscriptions(store string) []hooks.Hook { return k.Of(store).Hooks.All(nil) }

// Show answers a document as the provider's API does.
func (k *Keeper) Show(store, kind, id string) (json.RawMessage, error) {
	table, n, err := k.place(store, kind, id)
	if err != nil {
		return nil, err
	}
	if d, ok := table.Get(n); ok {
		return d.JSON, nil
	}
	return nil, ErrNotFound
}

// Change lays members over a document, or makes a new one.
func (k *Keeper) Change(store, kind, id string, patch []byte) (created bool, err error) {
	table, n, err := k.place(store, kind, id)
	if err != nil {
		return false, err
	}
	return table.Change(n, patch, k.now())
}

// Remove takes a document away.
func (k *Keeper) Remove(store, kind, id string) error {
	table, n, err := k.place(store, kind, id)
	if err == nil && !table.Delete(n) {
		err = ErrNotFound
	}
	return err
}

// IDs are the ids of a kind.
func (k *Keeper) IDs(store, kind string) ([]int64, error) {
	table, ok := k.Of(store).Tables[kind]
	if !ok {
		return nil, ErrNotFound
	}
	return table.IDs(nil), nil
}

func (k *Keeper) place(store, kind, id string) (*docs.Table, int64, error) {
	table, ok := k.Of(store).Tables[kind]
	n, err := strconv.ParseInt(id, 10, 64)
	if !ok || err != nil || n <= 0 {
		return nil, 0, ErrNotFound
	}
	return table, n, nil
}

// Spread makes the contents of stores differ: the same id always gives the same number.
func Spread(id string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(id)) // cannot fail
	return h.Sum64()
}

// Recipients are the hooks that a topic goes to: those subscribed to it, or for a topic of the whole app one hook per address.
func (s *Store) Recipients(topic string, all bool) []hooks.Hook {
	seen := map[string]bool{}
	return s.Hooks.All(func(h hooks.Hook) bool {
		if !all {
			return h.Topic == topic && h.Status != "disabled" && h.Status != "paused"
		}
		first := !seen[h.URL]
		seen[h.URL] = true
		return first
	})
}
