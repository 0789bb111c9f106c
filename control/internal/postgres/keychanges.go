package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"storefront.internal/control/internal/storekeys"
	"storefront.internal/shared/storekey"
)

// selectChanges returns the changes from the given version on with the present states of their keys. One
// statement is one snapshot: versions commit in order, so it has every change up to its key version. A plain
// join with the keys is planned for a third of all changes and reads every key for the one that changed; the
// LIMIT keeps it to the index. The version is no join either: its table is never analyzed, and the estimate
// would be so high that PostgreSQL compiles the statement (JIT), which takes longer than a push may.
const selectChanges = `
SELECT (SELECT version FROM control.key_version), c.version, c.token::text, c.digest,
    k.revoked_at IS NOT NULL OR k.api_key_id IS NULL,
    coalesce(k.pushed_version < k.changed_version, false),
    coalesce(k.api_key_id, ''), coalesce(k.connection_id, ''), coalesce(n.store_id, ''),
    coalesce(k.scopes, '{}')
FROM (
    SELECT version, token, digest
    FROM control.key_changes
    WHERE version >= $1
    ORDER BY version
    LIMIT $2) c
LEFT JOIN LATERAL (SELECT * FROM control.api_keys WHERE digest = c.digest LIMIT 1) k ON true
LEFT JOIN control.connections n ON n.connection_id = k.connection_id
ORDER BY c.version`

// ChangesAfter implements storekeys.State.
func (s *Store) ChangesAfter(ctx context.Context, after storekey.Change,
	limit int) (out storekeys.Changes, err error) {
	scan := func(row pgx.CollectableRow) (c storekeys.KeyChange, err error) {
		var digest []byte
		var unmarked bool
		g := &c.Grant
		err = row.Scan(&out.Version, &c.Version, &c.Token, &digest, &c.Revoked, &unmarked, &g.KeyID,
			&g.ConnectionID, &g.StoreID, &g.Scopes)
		copy(c.Digest[:], digest)
		out.Unmarked = out.Unmarked || unmarked
		return c, err
	}
	all, err := list(ctx, s.pool, "read key changes", scan, selectChanges, after.Version, limit+1)
	if err != nil || len(all) == 0 || !all[0].Same(after) {
		return storekeys.Changes{Version: out.Version}, err
	}
	out.Known, out.After, out.More = true, all[1:], len(all) > limit
	return out, nil
}

const selectNewest = `
SELECT v.version, c.version, c.token::text, c.digest, (SELECT min(version) FROM control.key_changes)
FROM control.key_version v
CROSS JOIN control.key_changes c
ORDER BY c.version DESC
LIMIT 1`

// Newest implements storekeys.State.
func (s *Store) Newest(ctx context.Context) (n storekeys.Newest, err error) {
	var digest []byte
	err = s.pool.QueryRow(ctx, selectNewest).
		Scan(&n.Version, &n.Change.Version, &n.Change.Token, &digest, &n.Oldest)
	copy(n.Change.Digest[:], digest)
	return n, Translate("read key version", err)
}

const markPushed = `
UPDATE control.api_keys
SET pushed_version = changed_version
WHERE pushed_version < changed_version AND changed_version <= $1`

// MarkPushed implements storekeys.State.
func (s *Store) MarkPushed(ctx context.Context, version int64) error {
	_, err := s.pool.Exec(ctx, markPushed, version)
	return Translate("mark keys", err)
}

const deleteChanges = `
DELETE FROM control.key_changes
WHERE version <= (SELECT max(version) FROM control.key_changes) - $1::bigint`

// DeleteChanges implements storekeys.State.
func (s *Store) DeleteChanges(ctx context.Context, keep int64) error {
	_, err := s.pool.Exec(ctx, deleteChanges, keep)
	return Translate("delete key changes", err)
}

const selectRevokedAfter = `
SELECT digest
FROM control.api_keys
WHERE revoked_at > now() - $2::interval AND changed_version > $1`

// RevokedAfter implements storekeys.State.
func (s *Store) RevokedAfter(ctx context.Context, version int64, within time.Duration) ([][32]byte, error) {
	scan := func(row pgx.CollectableRow) (d [32]byte, err error) {
		var digest []byte
		err = row.Scan(&digest)
		copy(d[:], digest)
		return d, err
	}
	return list(ctx, s.pool, "read revoked keys", scan, selectRevokedAfter, version, within)
}

const selectUnrevokedKeys = `
SELECT connection_id, api_key_id, digest
FROM control.api_keys
WHERE revoked_at IS NULL`

// UnrevokedKeys implements storekeys.State.
func (s *Store) UnrevokedKeys(ctx context.Context) ([]storekeys.UnrevokedKey, error) {
	scan := func(row pgx.CollectableRow) (k storekeys.UnrevokedKey, err error) {
		var digest []byte
		err = row.Scan(&k.ConnectionID, &k.ID, &digest)
		copy(k.Digest[:], digest)
		return k, err
	}
	return list(ctx, s.pool, "read keys", scan, selectUnrevokedKeys)
}
