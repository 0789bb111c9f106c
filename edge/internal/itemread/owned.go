package itemread

import (
	"context"

	"storefront.internal/shared/ident"
)

// Owned reports for each item whether it may be shown as the connection's. It asks memory, then Redis and
// PostgreSQL, each store once for all items. An item is refused only when one of them knows that the
// connection does not have it. When no store can be asked, the item stays, because serving recommendations
// matters more.
func (s *Service) Owned(ctx context.Context, c ident.ConnectionID, items []ident.ItemID) []bool {
	owned := make([]bool, len(items))
	unknown := make([]int, 0, len(items)) // indexes
	now := s.clock()
	for i, item := range items {
		d, e := s.memory.get(Key{c, item}, now)
		owned[i] = true
		switch {
		case now < d.until:
		case now < e.until:
			owned[i] = e.exists
		default:
			unknown = append(unknown, i)
		}
	}
	unknown = s.ownedByCache(ctx, c, items, owned, unknown)
	s.ownedByStore(ctx, c, items, owned, unknown)
	return owned
}

// ownedByCache decides the items that Redis knows, and returns the indexes of the others.
func (s *Service) ownedByCache(ctx context.Context, c ident.ConnectionID, items []ident.ItemID, owned []bool,
	unknown []int) (rest []int) {
	if len(unknown) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, existTimeout)
	defer cancel()
	present, err := s.cfg.Cache.Present(ctx, c, pick(items, unknown))
	if err != nil {
		return unknown
	}
	for n, i := range unknown {
		if present[n] == Unknown {
			rest = append(rest, i)
			continue
		}
		owned[i] = present[n] == Exists
		s.rememberExists(Key{c, items[i]}, owned[i])
	}
	return rest
}

func (s *Service) ownedByStore(ctx context.Context, c ident.ConnectionID, items []ident.ItemID, owned []bool,
	unknown []int) {
	if len(unknown) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, existTimeout)
	defer cancel()
	exist, err := s.existInStore(ctx, c, pick(items, unknown))
	if err != nil {
		s.cfg.Metrics.unknownOwner.Add(float64(len(unknown)))
		return
	}
	for n, i := range unknown {
		owned[i] = exist[n]
		s.rememberExists(Key{c, items[i]}, exist[n])
	}
}

func (s *Service) existInStore(ctx context.Context, c ident.ConnectionID,
	items []ident.ItemID) ([]bool, error) {
	if err := s.acquireSlot(ctx); err != nil {
		return nil, err
	}
	defer s.slots.Release(1)
	return s.cfg.Store.Exist(ctx, c, items)
}

func (s *Service) rememberExists(k Key, exists bool) {
	until := s.negativeUntil()
	if exists {
		until = s.clock() + int64(s.cfg.TTL)
	}
	s.memory.putExists(k, exists, until)
}

func pick(items []ident.ItemID, indexes []int) []ident.ItemID {
	picked := make([]ident.ItemID, len(indexes))
	for n, i := range indexes {
		picked[n] = items[i]
	}
	return picked
}
