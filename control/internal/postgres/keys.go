package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"storefront.internal/control/internal/storekeys"
	"storefront.internal/shared/ident"
	"storefront.internal/shared/pg"
)

// raiseVersion locks the row until the transaction ends, so versions commit in order.
const raiseVersion = `UPDATE control.key_version SET version = version + 1 RETURNING version`

const insertKey = `
INSERT INTO control.api_keys (api_key_id, connection_id, digest, sealed_secret, scopes, changed_version)
SELECT $1, connection_id, $3, $4, $5, $6
FROM control.connections
WHERE connection_id = $2
RETURNING created_at`

// InsertKey implements storekeys.Store.
func (s *Store) InsertKey(ctx context.Context, k storekeys.SealedKey) (createdAt time.Time, err error) {
	err = pg.InTx(ctx, s.pool, func(tx pgx.Tx) error {
		var version int64
		if err := tx.QueryRow(ctx, raiseVersion).Scan(&version); err != nil {
			return err
		}
		err := tx.QueryRow(ctx, insertKey, k.ID, k.ConnectionID, k.Digest[:], k.Sealed, k.Scopes,
			version).Scan(&createdAt)
		if errors.Is(err, pgx.ErrNoRows) {
			return notFound("connection")
		}
		if err != nil {
			return err
		}
		return s.jobs.EnqueueKeyPush(ctx, tx, k.ID)
	})
	return createdAt.UTC(), Translate("issue key", err)
}

const selectLiveKeys = `
SELECT api_key_id, connection_id, digest, sealed_secret, scopes, created_at
FROM control.api_keys
WHERE connection_id = $1 AND revoked_at IS NULL
ORDER BY created_at DESC, api_key_id DESC`

// LiveKeys implements storekeys.Store.
func (s *Store) LiveKeys(ctx context.Context, c ident.ConnectionID) (keys []storekeys.SealedKey, err error) {
	err = pg.InTx(ctx, s.pool, func(tx pgx.Tx) error {
		if err := connectionExists(ctx, tx, c); err != nil {
			return err
		}
		rows, _ := tx.Query(ctx, selectLiveKeys, c)
		var err error
		keys, err = pgx.CollectRows(rows, scanKey)
		return err
	})
	return keys, Translate("list keys", err)
}

func scanKey(row pgx.CollectableRow) (k storekeys.SealedKey, err error) {
	var digest []byte
	err = row.Scan(&k.ID, &k.ConnectionID, &digest, &k.Sealed, &k.Scopes, &k.CreatedAt)
	copy(k.Digest[:], digest)
	k.CreatedAt = k.CreatedAt.UTC()
	return k, err
}

const selectRevoked = `
SELECT revoked_at IS NOT NULL
FROM control.api_keys
WHERE api_key_id = $1 AND connection_id = $2`

const revokeKey = `
UPDATE control.api_keys
SET revoked_at = now(), changed_version = $2
WHERE api_key_id = $1`

// RevokeKey implements storekeys.Store. A revoked key is left as it is. The lock on the version orders
// concurrent calls.
func (s *Store) RevokeKey(ctx context.Context, c ident.ConnectionID, k ident.KeyID) error {
	err := pg.InTx(ctx, s.pool, func(tx pgx.Tx) error {
		revoked, err := isRevoked(ctx, tx, c, k)
		if err != nil || revoked {
			return err
		}
		var version int64
		if err := tx.QueryRow(ctx, raiseVersion).Scan(&version); err != nil {
			return err
		}
		// Another call may have revoked it while this one waited for the lock.
		if revoked, err = isRevoked(ctx, tx, c, k); err != nil || revoked {
			return err
		}
		if _, err := tx.Exec(ctx, revokeKey, k, version); err != nil {
			return err
		}
		return s.jobs.EnqueueKeyPush(ctx, tx, k)
	})
	return Translate("revoke key", err)
}

func isRevoked(ctx context.Context, tx pgx.Tx, c ident.ConnectionID,
	k ident.KeyID) (revoked bool, err error) {
	err = tx.QueryRow(ctx, selectRevoked, k, c).Scan(&revoked)
	if errors.Is(err, pgx.ErrNoRows) {
		return false, notFound("key")
	}
	return revoked, err
}

const selectKeyState = `
SELECT k.digest, k.api_key_id, k.connection_id, c.store_id, k.scopes, k.revoked_at IS NOT NULL,
    k.changed_version, k.pushed_version
FROM control.api_keys k
JOIN control.connections c ON c.connection_id = k.connection_id
WHERE k.api_key_id = $1`

// KeyState implements storekeys.State.
func (s *Store) KeyState(ctx context.Context, k ident.KeyID) (out storekeys.KeyState, err error) {
	var digest []byte
	g := &out.Grant
	err = s.pool.QueryRow(ctx, selectKeyState, k).
		Scan(&digest, &g.KeyID, &g.ConnectionID, &g.StoreID, &g.Scopes, &out.Revoked,
			&out.Changed, &out.Pushed)
	if errors.Is(err, pgx.ErrNoRows) {
		return out, notFound("key")
	}
	copy(out.Digest[:], digest)
	return out, Translate("read key", err)
}

const markPushed = `
UPDATE control.api_keys
SET pushed_version = $2
WHERE api_key_id = $1 AND pushed_version < $2`

// MarkPushed implements storekeys.State.
func (s *Store) MarkPushed(ctx context.Context, k ident.KeyID, changed int64) error {
	_, err := s.pool.Exec(ctx, markPushed, k, changed)
	return Translate("mark key", err)
}

// selectCompleteVersion returns the version before the first change that Redis lacks. Versions commit in
// order, so a snapshot contains every change up to the version that it contains.
const selectCompleteVersion = `
SELECT coalesce(
    (SELECT min(changed_version) - 1 FROM control.api_keys WHERE pushed_version < changed_version),
    version)
FROM control.key_version`

// CompleteVersion implements storekeys.State.
func (s *Store) CompleteVersion(ctx context.Context) (version int64, err error) {
	err = s.pool.QueryRow(ctx, selectCompleteVersion).Scan(&version)
	return version, Translate("read key version", err)
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

const selectSealHeaders = `
SELECT substring(sealed_secret FROM 1 FOR $1)
FROM control.api_keys
WHERE sealed_secret IS NOT NULL
UNION
SELECT substring(sealed FROM 1 FOR $1)
FROM control.credentials`

// SealHeaders returns the distinct first bytes of the stored ciphertexts: they name the keys that sealed
// them.
func (s *Store) SealHeaders(ctx context.Context, length int) ([][]byte, error) {
	return list(ctx, s.pool, "read seal headers", pgx.RowTo[[]byte], selectSealHeaders, length)
}
