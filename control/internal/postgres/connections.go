package postgres

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"storefront.internal/control/internal/connection"
	"storefront.internal/shared/fault"
	"storefront.internal/shared/ident"
	"storefront.internal/shared/pg"
)

const insertConnection = `
INSERT INTO control.connections (connection_id, store_id, provider, external_store_id, store_profile)
VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (provider, external_store_id) DO NOTHING`

const putToken = `
INSERT INTO control.connector_tokens (connection_id, connector_token_id, token_hmac)
SELECT connection_id, $2, $3
FROM control.connections
WHERE connection_id = $1 AND provider = $4
ON CONFLICT (connection_id) DO UPDATE
SET connector_token_id = excluded.connector_token_id, token_hmac = excluded.token_hmac, created_at = now()`

// CreateCustom implements connection.Store.
func (s *Store) CreateCustom(ctx context.Context, c connection.NewConnection) error {
	var profile []byte
	if c.Profile != nil {
		var err error
		if profile, err = json.Marshal(c.Profile); err != nil {
			return fmt.Errorf("store profile: %w", err)
		}
	}
	err := pg.InTx(ctx, s.pool, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, insertConnection, c.ID, c.StoreID, connection.ProviderCustom,
			c.ExternalStoreID, profile)
		if err != nil {
			return err
		}
		if tag.RowsAffected() == 0 {
			return fault.New(fault.StoreConnected, "The store has a connection.")
		}
		_, err = tx.Exec(ctx, putToken, c.ID, c.TokenID, c.TokenHMAC[:], connection.ProviderCustom)
		return err
	})
	return Translate("create connection", err)
}

// ReplaceToken implements connection.Store.
func (s *Store) ReplaceToken(ctx context.Context, c ident.ConnectionID, id ident.ConnectorTokenID,
	mac [sha256.Size]byte) error {
	tag, err := s.pool.Exec(ctx, putToken, c, id, mac[:], connection.ProviderCustom)
	if err != nil {
		return Translate("rotate token", err)
	}
	if tag.RowsAffected() == 0 {
		return notFound("custom connection")
	}
	return nil
}

const selectHolder = `
SELECT c.connection_id, c.store_id, c.disabled_at IS NOT NULL
FROM control.connector_tokens t
JOIN control.connections c ON c.connection_id = t.connection_id
WHERE t.token_hmac = $1 AND c.provider = $2`

// HolderOf implements connection.Store.
func (s *Store) HolderOf(ctx context.Context, mac [sha256.Size]byte) (c connection.Custom, err error) {
	err = s.pool.QueryRow(ctx, selectHolder, mac[:], connection.ProviderCustom).
		Scan(&c.ID, &c.StoreID, &c.Disabled)
	if errors.Is(err, pgx.ErrNoRows) {
		return c, notFound("token")
	}
	return c, Translate("identify connector", err)
}
