package itemread

import (
	"context"

	"storefront.internal/shared/ident"
)

// Belong answers for each item whether it may be shown as the connection's. Memory, Redis and PostgreSQL are asked, the
// stores once for all items; an item is refused only when one of them says that the connection has not got it. When no
// store can be asked it stays: serving matters more (contract, section 2 "Decisions").
func (s *Service) Belong(ctx context.Context, c ident.ConnectionID, items []ident.ItemID) []bool {
	belong := make([]bool, len(items))
	open := make([]int, 0, len(items)) // the places that nobody has answered yet
	now := s.clock()
	for i, item := range items {
		k := Key{c, item}
		hash := s.memory.hash(k)
		belong[i] = true
		if e := s.memory.docs.get(hash, k); e != nil && now < e.until.Load() {
			continue
		}
		if e := s.memory.exists.get(hash, k); e != nil && now < e.until.Load() {
			belong[i] = e.value
			continue
		}
		open = append(open, i)
	}
	open = s.presentInCache(ctx, c, items, belong, open)
	s.existInStore(ctx, c, items, belong, open)
	return belong
}

// presentInCache judges what Redis knows of, and returns the places that are still open.
func (s *Service) presentInCache(ctx context.Context, c ident.ConnectionID, items []ident.ItemID, belong []bool, open []int) []int {
	if len(open) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, existTimeout)
	defer cancel()
	present, err := s.cache.Present(ctx, c, pick(items, open))
	if err != nil {
		return open
	}
	var rest []int
	for n, i := range open {
		if present[n] == Unheard {
			rest = append(rest, i)
			continue
		}
		belong[i] = present[n] == Here
		s.noteExists(Key{c, items[i]}, belong[i])
	}
	return rest
}

func (s *Service) existInStore(ctx context.Context, c ident.ConnectionID, items []ident.ItemID, belong []bool, open []int) {
	if len(open) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, existTimeout)
	defer cancel()
	if s.enter(ctx) != nil {
		s.metrics.unjudged.Add(float64(len(open)))
		return
	}
	defer s.leave()
	exist, err := s.store.Exist(ctx, c, pick(items, open))
	if err != nil {
		s.metrics.unjudged.Add(float64(len(open)))
		return
	}
	for n, i := range open {
		belong[i] = exist[n]
		s.noteExists(Key{c, items[i]}, exist[n])
	}
}

func (s *Service) noteExists(k Key, exists bool) {
	end := s.negativeEnd()
	if exists {
		end = s.clock() + s.ttl
	}
	s.memory.noteExists(s.memory.hash(k), k, exists, end)
}

func pick(items []ident.ItemID, places []int) []ident.ItemID {
	picked := make([]ident.ItemID, len(places))
	for n, i := range places {
		picked[n] = items[i]
	}
	return picked
}
