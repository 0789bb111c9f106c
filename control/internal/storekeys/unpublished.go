package storekeys

import (
	"context"
	"slices"
	"sync"

	"storefront.internal/shared/fault"
	"storefront.internal/shared/ident"
)

// Revocation names a revoked key.
type Revocation struct {
	ConnectionID ident.ConnectionID
	KeyID        ident.KeyID
}

// maxUnpublished bounds the revocations that a process remembers, at about 150 bytes each.
const maxUnpublished = 10_000

// unpublished are the revocations of this process whose push failed. A PostgreSQL that is restored to a time
// before one of them looks like one that never had it, since Redis' log lacks it: so they are repeated until
// they are published. Repeating a revocation that PostgreSQL has changes nothing.
type unpublished struct {
	mu  sync.Mutex
	all []Revocation // oldest first
}

func (u *unpublished) add(r Revocation) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.all) < maxUnpublished && !slices.Contains(u.all, r) {
		u.all = append(u.all, r)
	}
}

func (u *unpublished) list() []Revocation {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.Clone(u.all)
}

// forget removes the oldest n.
func (u *unpublished) forget(n int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.all = slices.Delete(u.all, 0, n)
}

// revoke makes sure that PostgreSQL has the revocations. A key that PostgreSQL lacks altogether is revoked.
func (p *Publisher) revoke(ctx context.Context, all []Revocation) error {
	for _, r := range all {
		_, err := p.state.RevokeKey(ctx, r.ConnectionID, r.KeyID)
		if err != nil && fault.From(err).Code != fault.NotFound {
			return err
		}
	}
	return nil
}
