package itemread

import (
	"context"
	"sync"

	"storefront.internal/shared/ident"
)

// Bodies returns the body of each item that is in memory or that the stores give before ctx ends, and nil for
// the others. A look-up goes on after ctx has ended, so that the next call finds the item in memory.
func (s *Service) Bodies(ctx context.Context, c ident.ConnectionID, items []ident.ItemID) [][]byte {
	bodies := make([][]byte, len(items))
	var reads sync.WaitGroup
	now := s.clock()
	for i, item := range items {
		if d, _ := s.memory.get(Key{c, item}, now); now < d.until {
			bodies[i] = d.doc.Body
			continue
		}
		reads.Go(func() {
			if doc, err := s.Read(ctx, Request{ConnectionID: c, ItemID: item}); err == nil {
				bodies[i] = doc.Body
			}
		})
	}
	reads.Wait()
	return bodies
}
