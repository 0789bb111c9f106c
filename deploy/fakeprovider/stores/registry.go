package stores

import (
	"encoding/json"
	"errors"
	"strconv"
	"sync"

	"storefront.internal/deploy/fakeprovider/behaviour"
	"storefront.internal/deploy/fakeprovider/docs"
	"storefront.internal/deploy/fakeprovider/hooks"
)

// Errors of a debug request.
var (
	ErrNotFound      = errors.New("not found")
	ErrTopic         = errors.New("the provider has no such topic")
	ErrNoSubscribers = errors.New("no webhook is subscribed to this topic")
)

// Registry is the stores of one provider, with what the debug routes do to them.
type Registry struct {
	Faults behaviour.Switch
	config Config
	name   func(string) string
	open   func(id string) *Store

	mu     sync.Mutex
	stores map[string]*Store
	order  []string
}

// NewRegistry makes a registry with its first store. Stores are opened on first sight; name returns one
// spelling of the several that a store may be called by.
func NewRegistry(c Config, name func(string) string, open func(id string) *Store) *Registry {
	r := &Registry{config: c, name: name, open: open, stores: map[string]*Store{}}
	r.Store(c.FirstStore)
	return r
}

// Store returns a store; it is made when it was never seen.
func (r *Registry) Store(id string) *Store {
	id = r.name(id)
	r.mu.Lock()
	defer r.mu.Unlock()
	s, ok := r.stores[id]
	if !ok {
		s = r.open(id)
		r.stores[id] = s
		r.order = append(r.order, id)
	}
	return s
}

// Stores returns the ids of the stores that were seen, the first one first.
func (r *Registry) Stores() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string{}, r.order...)
}

// SetBehaviour replaces how the API answers.
func (r *Registry) SetBehaviour(b behaviour.Behaviour) { r.Faults.Set(b) }

// SetState changes the state of a store's installation.
func (r *Registry) SetState(store string, s State) { r.Store(store).Access.Set(s) }

// Subscriptions lists a store's subscriptions.
func (r *Registry) Subscriptions(store string) []hooks.Hook { return r.Store(store).Hooks.All(nil) }

// Get returns a document as the provider's API answers it.
func (r *Registry) Get(store, kind, id string) (json.RawMessage, error) {
	table, n, err := r.table(store, kind, id)
	if err != nil {
		return nil, err
	}
	if d, ok := table.Get(n); ok {
		return d.JSON, nil
	}
	return nil, ErrNotFound
}

// Patch replaces members of a document, or makes a new one.
func (r *Registry) Patch(store, kind, id string, patch []byte) (created bool, err error) {
	table, n, err := r.table(store, kind, id)
	if err != nil {
		return false, err
	}
	return table.Patch(n, patch, r.config.Now())
}

// Delete removes a document.
func (r *Registry) Delete(store, kind, id string) error {
	table, n, err := r.table(store, kind, id)
	if err == nil && !table.Delete(n) {
		err = ErrNotFound
	}
	return err
}

// IDs lists the ids of a kind.
func (r *Registry) IDs(store, kind string) ([]int64, error) {
	table, ok := r.Store(store).Tables[kind]
	if !ok {
		return nil, ErrNotFound
	}
	return table.IDs(nil), nil
}

func (r *Registry) table(store, kind, id string) (*docs.Table, int64, error) {
	table, ok := r.Store(store).Tables[kind]
	n, err := strconv.ParseInt(id, 10, 64)
	if !ok || err != nil || n <= 0 {
		return nil, 0, ErrNotFound
	}
	return table, n, nil
}
