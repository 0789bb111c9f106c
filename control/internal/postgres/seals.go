package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"storefront.internal/control/internal/seal"
)

// Seals is the part of schema control that holds sealed secrets.
type Seals struct{ pool *pgxpool.Pool }

// NewSeals returns the Seals behind a pool.
func NewSeals(pool *pgxpool.Pool) *Seals { return &Seals{pool: pool} }

// sealedTable holds the column and the statements of a table with secrets.
type sealedTable struct{ column, older, replace, count string }

// The update time of a credential stays: it tells when the credential itself was stored.
func sealedTableOf(t seal.Table) (sealedTable, error) {
	switch t {
	case seal.Credentials:
		return sealedTable{"sealed", `
SELECT connection_id, connection_id, sealed
FROM control.credentials
WHERE connection_id > $2 AND substring(sealed FROM 1 FOR 5) <> $1
ORDER BY connection_id
LIMIT $3`, `
UPDATE control.credentials
SET sealed = $3
WHERE connection_id = $1 AND sealed = $2`, `
SELECT count(*) FILTER (WHERE substring(sealed FROM 1 FOR 5) = $1), count(*)
FROM control.credentials`}, nil
	case seal.Keys:
		return sealedTable{"sealed_secret", `
SELECT api_key_id, connection_id, sealed_secret
FROM control.api_keys
WHERE api_key_id > $2 AND substring(sealed_secret FROM 1 FOR 5) <> $1
ORDER BY api_key_id
LIMIT $3`, `
UPDATE control.api_keys
SET sealed_secret = $3
WHERE api_key_id = $1 AND sealed_secret = $2`, `
SELECT count(*) FILTER (WHERE substring(sealed_secret FROM 1 FOR 5) = $1), count(sealed_secret)
FROM control.api_keys`}, nil
	}
	return sealedTable{}, fmt.Errorf("there are no sealed secrets in %q", t)
}

// Older implements seal.SecretStore.
func (s *Seals) Older(ctx context.Context, t seal.Table, primary []byte, after string,
	most int) ([]seal.Secret, error) {
	in, err := sealedTableOf(t)
	if err != nil {
		return nil, err
	}
	scan := func(row pgx.CollectableRow) (seal.Secret, error) {
		secret := seal.Secret{Binding: seal.Binding{Table: string(t), Column: in.column}}
		err := row.Scan(&secret.Binding.Row, &secret.Binding.Connection, &secret.Sealed)
		return secret, err
	}
	return list(ctx, s.pool, "read sealed secrets", scan, in.older, primary, after, most)
}

// Replace implements seal.SecretStore.
func (s *Seals) Replace(ctx context.Context, t seal.Table, old seal.Secret, anew []byte) (bool, error) {
	in, err := sealedTableOf(t)
	if err != nil {
		return false, err
	}
	tag, err := s.pool.Exec(ctx, in.replace, old.Binding.Row, old.Sealed, anew)
	return tag.RowsAffected() == 1, Translate("replace sealed secret", err)
}

// Count implements seal.SecretStore.
func (s *Seals) Count(ctx context.Context, t seal.Table, primary []byte) (current, older int64, err error) {
	in, err := sealedTableOf(t)
	if err != nil {
		return 0, 0, err
	}
	var all int64
	err = s.pool.QueryRow(ctx, in.count, primary).Scan(&current, &all)
	return current, all - current, Translate("count sealed secrets", err)
}
