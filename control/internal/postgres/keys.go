package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"storefront.internal/control/internal/storekeys"
	"storefront.internal/shared/ident"
	"storefront.internal/shared/pg"
	"storefront.internal/shared/storekey"
)

// raiseVersion locks the row until the transaction ends, so versions commit in order.
const raiseVersion = `UPDATE control.key_version SET version = version + 1 RETURNING version`

// insertKey is one statement, so that the lock on the version is short. pushed_version is for controls of the
// previous release, which hold Redis's version back while it is below changed_version.
const insertKey = `
WITH connection AS (SELECT connection_id FROM control.connections WHERE connection_id = $2),
raised AS (
    UPDATE control.key_version SET version = version + 1
    WHERE EXISTS (SELECT FROM connection)
    RETURNING version)
INSERT INTO control.api_keys (api_key_id, connection_id, digest, sealed_secret, scopes, changed_version,
    pushed_version)
SELECT $1, connection_id, $3, $4, $5, version, version
FROM connection, raised
RETURNING created_at, changed_version`

// InsertKey implements storekeys.Store.
func (s *Store) InsertKey(ctx context.Context, k storekeys.SealedKey) (createdAt time.Time, version int64,
	err error) {
	err = s.pool.QueryRow(ctx, insertKey, k.ID, k.ConnectionID, k.Digest[:], k.Sealed, k.Scopes).
		Scan(&createdAt, &version)
	if errors.Is(err, pgx.ErrNoRows) {
		err = notFound("connection")
	}
	return createdAt.UTC(), version, Translate("issue key", err)
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

const selectChange = `
SELECT revoked_at IS NOT NULL, changed_version, digest
FROM control.api_keys
WHERE api_key_id = $1 AND connection_id = $2`

const revokeKey = `
UPDATE control.api_keys
SET revoked_at = now(), changed_version = $2, pushed_version = $2
WHERE api_key_id = $1`

// errAlreadyRevoked rolls back a revocation of a key that another call has revoked.
var errAlreadyRevoked = errors.New("the key is revoked")

// RevokeKey implements storekeys.Store. A revoked key is left as it is. The lock on the version orders
// concurrent calls.
func (s *Store) RevokeKey(ctx context.Context, c ident.ConnectionID,
	k ident.KeyID) (change storekey.Change, err error) {
	err = pg.InTx(ctx, s.pool, func(tx pgx.Tx) error {
		if err := lastChange(ctx, tx, c, k, &change); err != nil {
			return err
		}
		var version int64
		if err := tx.QueryRow(ctx, raiseVersion).Scan(&version); err != nil {
			return err
		}
		// Another call may have revoked it while this one waited for the lock.
		if err := lastChange(ctx, tx, c, k, &change); err != nil {
			return err
		}
		change.Version = version
		_, err := tx.Exec(ctx, revokeKey, k, version)
		return err
	})
	if errors.Is(err, errAlreadyRevoked) {
		err = nil
	}
	return change, Translate("revoke key", err)
}

// lastChange reads the last change of a key. It is errAlreadyRevoked when that was its revocation.
func lastChange(ctx context.Context, tx pgx.Tx, c ident.ConnectionID, k ident.KeyID,
	change *storekey.Change) error {
	var digest []byte
	var revoked bool
	err := tx.QueryRow(ctx, selectChange, k, c).Scan(&revoked, &change.Version, &digest)
	if errors.Is(err, pgx.ErrNoRows) {
		return notFound("key")
	}
	copy(change.Digest[:], digest)
	if err == nil && revoked {
		return errAlreadyRevoked
	}
	return err
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
