package recommend

import (
	"context"
	"fmt"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/sync/singleflight"

	"storefront.internal/shared/ident"
)

// SellableStore lists a connection's sellable items, most recently refreshed first: PostgreSQL.
type SellableStore interface {
	Sellable(ctx context.Context, c ident.ConnectionID, most int) ([]ident.ItemID, error)
}

// The times and the bound of the lists in memory.
const (
	sellableTTL     = 5 * time.Second
	sellableRetry   = time.Second // after a failure
	sellableTimeout = 250 * time.Millisecond
	maxConnections  = 10_000
)

// SellableItems implements Fallback with the store's lists. A list is kept for a few seconds, and longer
// while the store does not answer. It is safe for concurrent use.
type SellableItems struct {
	store SellableStore
	now   func() time.Time
	loads singleflight.Group
	lists *lru.Cache[ident.ConnectionID, sellableList]
}

type sellableList struct {
	items []Item
	until time.Time
	err   error // when no list was ever read
}

var _ Fallback = (*SellableItems)(nil)

// NewSellableItems returns a fallback with no lists yet.
func NewSellableItems(store SellableStore, now func() time.Time) *SellableItems {
	lists, _ := lru.New[ident.ConnectionID, sellableList](maxConnections) // fails only for a size of 0
	return &SellableItems{store: store, now: now, lists: lists}
}

// Items implements Fallback. The list is shared, so callers only read it.
func (s *SellableItems) Items(ctx context.Context, c ident.ConnectionID, limit int) ([]Item, error) {
	list, known := s.lists.Get(c)
	if !known || !s.now().Before(list.until) {
		list = s.load(ctx, c)
	}
	n := min(limit, len(list.items))
	return list.items[:n:n], list.err
}

// load asks the store once for all concurrent callers, with its own short deadline, so that one caller that
// gives up does not fail the others. After a failure the last list that was read stays.
func (s *SellableItems) load(ctx context.Context, c ident.ConnectionID) sellableList {
	v, _, _ := s.loads.Do(string(c), func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), sellableTimeout)
		defer cancel()
		items, err := s.store.Sellable(ctx, c, MaxItems)
		list, known := s.lists.Peek(c)
		if err != nil {
			list.until = s.now().Add(sellableRetry)
			if !known || list.err != nil {
				list.err = fmt.Errorf("list sellable items: %w", err)
			}
		} else {
			list = sellableList{items: make([]Item, len(items)), until: s.now().Add(sellableTTL)}
			for i, item := range items {
				list.items[i].ItemID = item
			}
		}
		s.lists.Add(c, list)
		return list, nil
	})
	return v.(sellableList)
}
