// Package erasure owns the request to forget a shopper (contract, section 3, E9): it is written down, durably, before the
// answer, and the relay executes it. The package refuses to know whether anybody has seen the visitor.
package erasure

import (
	"context"

	"storefront.internal/shared/ident"
)

// Store is where requests are written down.
type Store interface {
	// EraseVisitor returns not_found for a connection that is not there. Asked again, it reaches to the present.
	EraseVisitor(ctx context.Context, c ident.ConnectionID, v ident.VisitorID) error
}

// Service takes requests.
type Service struct{ store Store }

// New returns a Service.
func New(store Store) *Service { return &Service{store: store} }

// Visitor asks to forget a visitor of a connection.
func (s *Service) Visitor(ctx context.Context, c ident.ConnectionID, v ident.VisitorID) error {
	return s.store.EraseVisitor(ctx, c, v)
}
