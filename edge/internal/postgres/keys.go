package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"storefront.internal/edge/internal/access"
	"storefront.internal/shared/storekey"
)

// Keys implements access.Store.
type Keys struct {
	pool *pgxpool.Pool
	poll *pgxpool.Pool
	gate gate
}

var _ access.Store = (*Keys)(nil)

// NewKeys returns the reader of keys. Versions are read through a pool of their own: everything that is remembered
// hangs from them, so they must not wait behind a flood of look-ups.
func NewKeys(pool, poll *pgxpool.Pool) *Keys { return &Keys{pool: pool, poll: poll, gate: newGate()} }

// Grant implements access.Store.
func (k *Keys) Grant(ctx context.Context, d access.Digest) (storekey.Grant, bool, error) {
	if err := k.gate.enter(ctx); err != nil {
		return storekey.Grant{}, false, err
	}
	defer k.gate.leave()
	const query = `
		SELECT k.api_key_id, k.connection_id, c.store_id, k.scopes
		FROM control.api_keys k JOIN control.connections c ON c.connection_id = k.connection_id
		WHERE k.digest = $1 AND k.revoked_at IS NULL`
	var g storekey.Grant
	err := k.pool.QueryRow(ctx, query, d[:]).Scan(&g.KeyID, &g.ConnectionID, &g.StoreID, &g.Scopes)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return storekey.Grant{}, false, nil
	case err != nil:
		return storekey.Grant{}, false, fmt.Errorf("read key: %w", err)
	}
	return g, true, nil
}

// Version implements access.Store.
func (k *Keys) Version(ctx context.Context) (version int64, err error) {
	if err := k.poll.QueryRow(ctx, `SELECT version FROM control.key_version`).Scan(&version); err != nil {
		return 0, fmt.Errorf("read key version: %w", err)
	}
	return version, nil
}
