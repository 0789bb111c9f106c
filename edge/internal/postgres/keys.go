package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/semaphore"

	"storefront.internal/edge/internal/access"
	"storefront.internal/shared/storekey"
)

// maxLookups bounds the look-ups of each kind (keys, ledger) that are in flight, so that a flood of misses
// does not reach the database, and one kind does not starve the other.
const maxLookups = 8

// Keys implements access.Store.
type Keys struct {
	pool  *pgxpool.Pool
	poll  *pgxpool.Pool
	slots *semaphore.Weighted
}

var _ access.Store = (*Keys)(nil)

// NewKeys returns the reader of keys. Changes are read through their own pool, because everything that the
// edge caches of keys depends on them, so they must not wait behind a flood of look-ups.
func NewKeys(pool, poll *pgxpool.Pool) *Keys {
	return &Keys{pool: pool, poll: poll, slots: semaphore.NewWeighted(maxLookups)}
}

// Grant implements access.Store.
func (k *Keys) Grant(ctx context.Context, d access.Digest) (storekey.Grant, bool, error) {
	if err := k.slots.Acquire(ctx, 1); err != nil {
		return storekey.Grant{}, false, err
	}
	defer k.slots.Release(1)
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

// selectChanges is one statement and so one snapshot: it has every change up to its version.
const selectChanges = `
SELECT v.version, c.version, c.token::text, c.digest
FROM control.key_version v
CROSS JOIN (
    SELECT version, token, digest
    FROM control.key_changes
    WHERE version >= least($1, (SELECT max(version) FROM control.key_changes))
    ORDER BY version DESC
    LIMIT $2) c
ORDER BY c.version DESC`

// Changes implements access.Store.
func (k *Keys) Changes(ctx context.Context, since storekey.Change, known bool) (log access.Log, err error) {
	limit := access.MaxChanges
	if !known {
		limit = 1
	}
	rows, _ := k.poll.Query(ctx, selectChanges, since.Version, limit) // CollectRows returns its error
	log.Changes, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (c storekey.Change, err error) {
		var digest []byte
		err = row.Scan(&log.Version, &c.Version, &c.Token, &digest)
		copy(c.Digest[:], digest)
		return c, err
	})
	if err != nil {
		return access.Log{}, fmt.Errorf("read key changes: %w", err)
	}
	return log, nil
}
