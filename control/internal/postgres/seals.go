package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"storefront.internal/control/internal/reseal"
	"storefront.internal/control/internal/seal"
)

// Seals are the columns that hold sealed secrets.
type Seals struct{ pool *pgxpool.Pool }

// NewSeals returns the Seals behind a pool.
func NewSeals(pool *pgxpool.Pool) *Seals { return &Seals{pool: pool} }

// sealed are the statements on one table of secrets, and its column.
type sealed struct{ column, older, replace, count string }

// The time of a credential stays: it says when the credential itself came.
func sealedIn(t reseal.Table) (sealed, error) {
	switch t {
	case reseal.Credentials:
		return sealed{"sealed", `
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
	case reseal.Keys:
		return sealed{"sealed_secret", `
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
	return sealed{}, fmt.Errorf("there are no sealed secrets in %q", t)
}

// Older implements reseal.Store.
func (s *Seals) Older(ctx context.Context, t reseal.Table, primary []byte, after string, most int) ([]reseal.Secret, error) {
	in, err := sealedIn(t)
	if err != nil {
		return nil, err
	}
	rows, err := s.pool.Query(ctx, in.older, primary, after, most)
	if err != nil {
		return nil, Translate("read sealed secrets", err)
	}
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (reseal.Secret, error) {
		secret := reseal.Secret{Place: seal.Place{Table: string(t), Column: in.column}}
		err := row.Scan(&secret.Place.Row, &secret.Place.Connection, &secret.Sealed)
		return secret, err
	})
	return all, Translate("read sealed secrets", err)
}

// Replace implements reseal.Store.
func (s *Seals) Replace(ctx context.Context, t reseal.Table, old reseal.Secret, anew []byte) (bool, error) {
	in, err := sealedIn(t)
	if err != nil {
		return false, err
	}
	tag, err := s.pool.Exec(ctx, in.replace, old.Place.Row, old.Sealed, anew)
	return tag.RowsAffected() == 1, Translate("replace sealed secret", err)
}

// Count implements reseal.Store.
func (s *Seals) Count(ctx context.Context, t reseal.Table, primary []byte) (current, older int64, err error) {
	in, err := sealedIn(t)
	if err != nil {
		return 0, 0, err
	}
	var all int64
	err = s.pool.QueryRow(ctx, in.count, primary).Scan(&current, &all)
	return current, all - current, Translate("count sealed secrets", err)
}
