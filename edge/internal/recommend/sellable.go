package recommend

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"storefront.internal/shared/ident"
)

// SellableStore lists a connection's sellable items, most recently refreshed first: PostgreSQL.
type SellableStore interface {
	Sellable(ctx context.Context, c ident.ConnectionID, most int) ([]ident.ItemID, error)
}

// The bounds of what is remembered of connections.
const (
	sellableLife    = 5 * time.Second
	sellableRetry   = time.Second // after a failure
	sellableTimeout = 250 * time.Millisecond
	maxConnections  = 10_000
)

// Sellables implements Fallback with the store's lists, which are remembered for a few seconds, and longer while the
// store does not answer. It may be used by many goroutines.
type Sellables struct {
	store SellableStore
	now   func() time.Time
	loads singleflight.Group

	mu    sync.Mutex
	lists map[ident.ConnectionID]sellable
}

type sellable struct {
	picks []Pick
	until time.Time
	err   error // of a list that was never had
}

var _ Fallback = (*Sellables)(nil)

// NewSellables returns a fallback that remembers nothing yet.
func NewSellables(store SellableStore, now func() time.Time) *Sellables {
	return &Sellables{store: store, now: now, lists: make(map[ident.ConnectionID]sellable)}
}

// Picks implements Fallback. The list is shared: callers only read it.
func (s *Sellables) Picks(ctx context.Context, c ident.ConnectionID, limit int) ([]Pick, error) {
	list, known := s.remembered(c)
	if !known || !s.now().Before(list.until) {
		list = s.load(ctx, c)
	}
	n := min(limit, len(list.picks))
	return list.picks[:n:n], list.err
}

func (s *Sellables) remembered(c ident.ConnectionID) (sellable, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	list, known := s.lists[c]
	return list, known
}

// load asks the store once for all who ask at the same time. Its deadline is its own, so that one caller who gives up
// does not fail the others; it is so short that none needs to.
func (s *Sellables) load(ctx context.Context, c ident.ConnectionID) sellable {
	v, _, _ := s.loads.Do(string(c), func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), sellableTimeout)
		defer cancel()
		items, err := s.store.Sellable(ctx, c, maxLimit)
		return s.remember(c, items, err), nil
	})
	return v.(sellable)
}

// remember keeps the list; of a failure, the last list that was had.
func (s *Sellables) remember(c ident.ConnectionID, items []ident.ItemID, err error) sellable {
	s.mu.Lock()
	defer s.mu.Unlock()
	list, known := s.lists[c]
	if err != nil {
		list.until = s.now().Add(sellableRetry)
		if !known || list.err != nil {
			list.err = fmt.Errorf("list sellable items: %w", err)
		}
	} else {
		list = sellable{picks: make([]Pick, len(items)), until: s.now().Add(sellableLife)}
		for i, item := range items {
			list.picks[i].ItemID = item
		}
	}
	if !known && len(s.lists) >= maxConnections {
		for victim := range s.lists { // an arbitrary one: what is lost costs a look-up
			delete(s.lists, victim)
			break
		}
	}
	s.lists[c] = list
	return list
}
